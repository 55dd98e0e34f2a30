"""Property tests: cases, invariants of your own, and reports. Strategies need the extra `testing`."""

from fedbounds.empirical.invariants import BrokenInvariant as BrokenInvariant
from fedbounds.empirical.invariants import Case as Case
from fedbounds.empirical.invariants import Counterexample as Counterexample
from fedbounds.empirical.invariants import InvariantSides as InvariantSides
from fedbounds.empirical.invariants import InvariantVerdict as InvariantVerdict
from fedbounds.empirical.invariants import PlainProblem as PlainProblem
from fedbounds.empirical.invariants import Report as Report
from fedbounds.empirical.invariants import Run as Run
from fedbounds.empirical.invariants.averaging import check_averaging as check_averaging
from fedbounds.empirical.invariants.search import Subject as Subject
from fedbounds.empirical.invariants.search import search as search
from fedbounds.empirical.invariants.search import strategy_of as strategy_of
from fedbounds.empirical.papers.fedmrn.invariants import check_masking as check_masking
from fedbounds.empirical.papers.fedmrn.invariants import masked_round as masked_round
