"""The symbols of Li et al. (2024); `Delta1` is E|w_1 - w*|^2 and `F` is F(w_0) - F*."""

from functools import partial

from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import read_notation

NOTATION = read_notation(__file__)
new_result = partial(paper_result, "fedmrn", "Li et al. 2024", NOTATION)
