"""Counterexamples as objects: the hypotheses they meet, both sides recomputed line by line, and what holds instead.

All numbers are exact fractions; an irrational one is replaced by a rational that is safe to use and says so. Nothing
here trusts a number that it has not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt
from operator import eq, ge, gt, le, lt
from typing import Any, Literal

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Condition

Number = Fraction | int
Hypothesis = Assumption | Condition | str  # in words where it is neither
Degree = Literal[
    "false as stated", "false as an inference", "false under a literal reading", "unstated but harmless", "units"
]  # from the gravest to the least
RELATIONS: dict[str, Callable[[Any, Any], Any]] = {"<=": le, "<": lt, "==": eq, ">=": ge, ">": gt}


def format_fraction(value: Number) -> str:
    """A fraction for people: exact where that is short, with six digits."""
    value = Fraction(value)
    if value.denominator == 1 and abs(value) < 10**12:
        return str(value.numerator)
    if value.denominator < 10**6:
        return f"{value} ({float(value):.6g})"
    return f"{float(value):.6g} (rounded)"


def name_of(hypothesis: Hypothesis) -> str:
    """An assumption by its name, a condition as it is written."""
    if isinstance(hypothesis, str):
        return hypothesis
    return hypothesis.name if isinstance(hypothesis, Assumption) else hypothesis.text


@dataclass(frozen=True)
class Check:
    """One hypothesis of a claim, met or not by an instance.

    Args:
        of: the hypothesis.
        text: what is compared, with symbols.
        left, op, right: the two sides, recomputed.

    Example:
        >>> print(Check("bounded-divergence", "max_n |v_n|^2 <= d^2", Fraction(1), "<=", Fraction(1)))
        bounded-divergence: max_n |v_n|^2 <= d^2: 1 <= 1, holds
    """

    of: Hypothesis
    text: str
    left: Number
    op: Literal["<=", "<", "==", ">=", ">"]
    right: Number

    @property
    def name(self) -> str:
        """What the hypothesis is called."""
        return name_of(self.of)

    @property
    def holds(self) -> bool:
        """Whether the relation is true."""
        return RELATIONS[self.op](Fraction(self.left), Fraction(self.right))

    def __str__(self) -> str:
        word = "holds" if self.holds else "FAILS"
        name = self.name if self.text == self.name else f"{self.name}: {self.text}"
        return f"{name}: {format_fraction(self.left)} {self.op} {format_fraction(self.right)}, {word}"


@dataclass(frozen=True)
class Line:
    """One step of a recomputation: what, and its value."""

    text: str
    value: Number

    def __str__(self) -> str:
        return f"{self.text} = {format_fraction(self.value)}"


@dataclass(frozen=True)
class Smaller:
    """A smaller instance that refutes nothing, so that the counterexample is minimal in this direction."""

    text: str
    claimed: Number
    true: Number


@dataclass(frozen=True)
class Replay:
    """A counterexample, recomputed: the claim says true <= claimed.

    Args:
        instance: the instance in words.
        hypotheses: every hypothesis of the claim, checked on the instance.
        lines: the recomputation.
        claimed, true: both sides; where irrational, claimed is rounded up and true is rounded down.
        sides: what the two sides are.
        minimal: in which sense there is no smaller one.
        smaller: instances that are smaller in that sense, which must refute nothing.
    """

    instance: str
    hypotheses: tuple[Check, ...]
    lines: tuple[Line, ...]
    claimed: Number
    true: Number
    sides: tuple[str, str]
    minimal: str
    smaller: tuple[Smaller, ...] = ()

    @property
    def failing(self) -> tuple[Check, ...]:
        """The hypotheses that the instance breaks."""
        return tuple(check for check in self.hypotheses if not check.holds)

    @property
    def exceeds(self) -> bool:
        """Whether the true side is larger than the claimed one."""
        return self.true > self.claimed

    @property
    def is_minimal(self) -> bool:
        """Whether none of the smaller instances refutes the claim."""
        return all(small.true <= small.claimed for small in self.smaller)

    def argument(self, text: str) -> Argument:
        """The recomputation as an argument: that an assumption is needed, where the paper makes it.

        Args:
            text: what it shows.
        """
        exceeds = Check("the instance", f"{self.sides[1]} against {self.sides[0]}", self.true, ">", self.claimed)
        return Argument(f"{text} {self.instance}", (*self.hypotheses, exceeds))

    @property
    def comparison(self) -> str:
        """Both sides in one line."""
        sign = "<" if self.exceeds else ">="
        return f"{self.sides[0]} {format_fraction(self.claimed)} {sign} {self.sides[1]} {format_fraction(self.true)}"


@dataclass(frozen=True)
class Argument:
    """A short argument in words, with the numbers that it mentions recomputed; no checker reads the words."""

    text: str  # its lines
    checks: tuple[Check, ...]  # the inequalities and identities that it mentions, in numbers
    axioms: tuple[str, ...] = ()  # the theorems that it cites


@dataclass(frozen=True)
class Quote:
    """The paper's own words, verbatim.

    Example:
        >>> print(Quote("for all t_0", "eq. (7)"))
        "for all t_0" (eq. (7))
    """

    text: str  # the words; "..." where some are left out
    where: str  # the place in the paper

    def __str__(self) -> str:
        return f'"{self.text}" ({self.where})'


@dataclass(frozen=True, eq=False)
class Erratum:
    """What a paper says where it fails: how false that is, why, the smallest counterexample, and what holds instead.

    Args:
        id: its name in its paper; forms refer to it in `refuted_by`.
        where: the place in the paper.
        claim: what the paper says there, in our words.
        fails: why it is false, in one or two sentences.
        instead: what holds.
        under: its stated hypotheses.
        replay: recomputes the counterexample.
        refutes: the forms that the counterexample refutes as they stand ("proposition-4.1[printed]"), and steps that
            a paper's proof rests on ("lemma-b.3.3/S10").
        repair: the claims that hold instead, within the paper ("proposition-4.1[repaired]"); the repair's verdict is
            the weakest of theirs.
        argument: an exact proof of the repair, where no claim of the paper states it.
        open: why the repair is undecided, where there is neither.
        degree: how false: as stated; as an inference, where the conclusion does not follow but is not refuted; only if
            read literally; unstated without harm; or in its units alone.
        quotes: what the paper says about it, its own qualifiers included; without them `claim` is a paraphrase.
        repeats: the erratum whose remark this one makes at another place, which is as grave or graver ("" for a
            finding of its own).
    """

    id: str
    where: str
    claim: str
    fails: str
    instead: str
    under: tuple[Hypothesis, ...]
    replay: Callable[[], Replay]
    refutes: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()
    argument: Callable[[], Argument] | None = None
    open: str = ""
    degree: Degree = "false as stated"
    quotes: tuple[Quote, ...] = ()
    repeats: str = ""

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """The names of the hypotheses that the counterexample must meet."""
        return tuple(map(name_of, self.under))

    @cached_property
    def replayed(self) -> Replay:
        """The recomputation, made once."""
        return self.replay()

    def counterexample(self) -> tuple[Fraction, Fraction]:
        """(claimed, true); the paper says true <= claimed."""
        return Fraction(self.replayed.claimed), Fraction(self.replayed.true)

    def claims(self, paper: str) -> Iterator[Claim]:
        """What fails and its repair, for a claim set."""
        replay = self.replayed
        assumptions = tuple(h for h in self.under if isinstance(h, Assumption))
        facts = [str(check) for check in replay.hypotheses] + [str(line) for line in replay.lines]
        yield Claim(
            id=f"{paper}/erratum/{self.id}",
            kind="erratum",
            text=self.claim,
            subject=self,
            content="\n".join([self.claim, *self.hypotheses, *facts, str(replay.claimed), str(replay.true)]),
            assumptions=assumptions,
            source=self.where,
            instead=f"{paper}/repair/{self.id}",
        )
        yield Claim(
            id=f"{paper}/repair/{self.id}",
            kind="repair",
            text=self.instead,
            subject=Repair(self, paper),
            content="\n".join([self.instead, *self.repair, self.open, *self._argued()]),
            source=self.where,
        )

    def _argued(self) -> list[str]:
        if self.argument is None:
            return []
        argument = self.argument()
        return [argument.text, *(str(check) for check in argument.checks), *argument.axioms]


@dataclass(frozen=True, eq=False)
class Repair:
    """What holds instead of an erratum's claim, as a subject of trials."""

    erratum: Erratum
    paper: str

    @property
    def rests_on(self) -> tuple[str, ...]:
        """The ids of the claims that state it."""
        return tuple(f"{self.paper}/{name}" for name in self.erratum.repair)


@dataclass(frozen=True)
class Supplement:
    """A statement that the paper does not make but that its errata lead to, decided by an argument or left open."""

    id: str  # its name in its paper
    where: str  # what in the paper it is about
    claim: str  # the statement
    argument: Callable[[], Argument] | None = None  # an exact proof
    open: str = ""  # why it is undecided, where there is none

    def claims(self, paper: str) -> Iterator[Claim]:
        """The statement, for a claim set."""
        argument = self.argument() if self.argument else None
        content = [self.claim, self.open]
        if argument:
            content += [argument.text, *(str(check) for check in argument.checks), *argument.axioms]
        yield Claim(f"{paper}/repair/{self.id}", "repair", self.claim, self, "\n".join(content), source=self.where)


@dataclass(frozen=True)
class Wording:
    """A slip of wording or notation, which carries no verdict.

    Args:
        id: its name in its paper.
        where: the place in the paper.
        says: what stands there, in our words.
        should: what is meant, or what it should say.
        quotes: the paper's own words, where they are needed.
    """

    id: str
    where: str
    says: str
    should: str
    quotes: tuple[Quote, ...] = ()

    def claims(self, paper: str) -> Iterator[Claim]:
        """The slip, for a claim set; no checker hears it."""
        text = f"{self.says}; rather: {self.should}"
        yield Claim(f"{paper}/wording/{self.id}", "wording", text, self, text, source=self.where)


# --- Rational enclosures -----------------------------------------------------------------------------------------


def exp_below(x: Fraction, terms: int = 30) -> Fraction:
    """A rational below exp(x) for x >= 0: a partial sum of its series.

    Example:
        >>> exp_below(Fraction(3)) > 20
        True
    """
    total = term = Fraction(1)
    for k in range(1, terms):
        term = term * x / k
        total += term
    return total


def exp_above(x: Fraction, terms: int = 30) -> Fraction:
    """A rational above exp(x) for 0 <= x < terms: the partial sum and a geometric bound of the rest.

    Example:
        >>> exp_above(Fraction(299, 100)) < 20
        True
    """
    term = Fraction(1)
    for k in range(1, terms + 1):
        term = term * x / k
    return exp_below(x, terms) + term / (1 - x / (terms + 1))


def root_below(x: Fraction, digits: int = 40) -> Fraction:
    """The square root rounded down to this many decimal digits."""
    scale = 10**digits
    return Fraction(isqrt(x.numerator * scale * scale // x.denominator), scale)


def root_above(x: Fraction, digits: int = 40) -> Fraction:
    """The square root rounded up to this many decimal digits."""
    below = root_below(x, digits)
    return below if below**2 == x else below + Fraction(1, 10**digits)
