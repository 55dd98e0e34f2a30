"""The smallest number of rounds where constants that follow from the rounds rise and fall: blocks are excluded.

A constant such as FedAU's weight error W(T) is known by value only, and is not monotone. It is the mean over T rounds
of nonnegative numbers, so $W(t)\\ge\\frac abW(a)$ for $a\\le t\\le b$; a maximum over the rounds is at least its value
at a. If the bound, with these constants held, falls with T and rises with them, the best bound at b with these smaller
values is at most the best bound at every t from a to b: if that is above the target, no t of the block reaches it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt

from fedbounds.bounds.evaluation.evaluate import Value
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.evaluation.resolution import resolve
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import Derived, dependencies

SHARE = 0.9  # of the distance to where the target would be reached, for the next block
LARGEST_RATIO = 1e6
INADMISSIBLE = 10.0  # ratio of a bound to the target that stands for no bound: how far the next block goes
LONGER = 8.0  # how many times as far the next block goes where there was no bound all over a block


@dataclass
class RelaxedBound:
    """A bound whose constants that follow from the rounds are replaced by their least values in a block.

    Args:
        original: the result.
        form: of it.
        counter: the symbol of the rounds.
        constants: what is given.
        opaque: the symbols of the constants that are replaced.
    """

    original: Result
    form: Form
    counter: str
    constants: Mapping[str, Value]
    opaque: tuple[str, ...]
    result: Result = field(init=False)
    _rules: Mapping[str, Derived] = field(init=False)
    _least: dict[str, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._rules = _first_rules(self.form, self.opaque)
        others = tuple(rule for rule in self.form.derived if rule.name not in self.opaque)
        held = tuple(
            Derived(name, (), lambda name=name: self._least[name], rule.why) for name, rule in self._rules.items()
        )
        form = replace(self.form, derived=(*held, *others))
        self.result = replace(self.original, forms=(form,), default=form.name)

    def hold(self, first: int, last: int) -> None:
        """Replace the constants by what they are at least in all rounds from `first` to `last`."""
        known = resolve(
            compiled_form(self.original, self.form),
            {**self.constants, self.counter: float(first)},
            needed=frozenset(self.opaque),
        )
        for name, rule in self._rules.items():
            share = first / last if rule.over_rounds == "mean" else 1.0
            self._least[name] = float(known[name].value) * share


def dependence_known(form: Form, opaque: tuple[str, ...], over: Sequence[str]) -> bool:
    """Whether there are such constants, each with a known dependence on the rounds and none on what is optimized."""
    rules = _first_rules(form, opaque)
    if not rules or len(rules) < len(opaque) or not all(rule.over_rounds for rule in rules.values()):
        return False
    return not dependencies(opaque, form.derived).intersection(over)


def _first_rules(form: Form, names: Sequence[str]) -> dict[str, Derived]:
    """Of each of these constants the rule that comes first."""
    return {rule.name: rule for rule in reversed(form.derived) if rule.name in names}


@dataclass
class BlockSearch:
    """The search for the smallest number that reaches a target, by excluding blocks from below.

    Args:
        ratio: of the best bound at a number to the target; the number reaches the target if it is at most 1.
        excludes: whether every number of a block (first, last) is excluded.
        least: every smaller number is excluded; rises as the search goes on.
        most: the end of the search.

    Example:
        >>> search = BlockSearch(lambda T: 1000 / T, lambda a, b: b < 1000, 1, 10**6)
        >>> search.run(), search.least
        (True, 1000)
    """

    ratio: Callable[[float], float]
    excludes: Callable[[int, int], bool]
    least: int
    most: int

    def run(self) -> bool:
        """Whether a number reaches; it is then `least`."""
        times = 1.0  # how much longer a block is made after blocks that were excluded at once
        while self.least <= self.most:
            above = min(self.ratio(self.least), LARGEST_RATIO)
            if above <= 1:
                return True
            # a bound that falls like 1/T is still above the target there
            last = aim = int(min(self.most, self.least + SHARE * (above - 1) * self.least * times))
            while last > self.least and not self.excludes(self.least, last):
                last = isqrt(self.least * last) if last > 4 * self.least else (self.least + last) // 2
            times = min(times * LONGER, LARGEST_RATIO) if above == INADMISSIBLE and last == aim else 1.0
            self.least = last + 1
        return False
