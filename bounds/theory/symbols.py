"""Quantities: the symbols of the papers, each with its meaning, domain, shape, dimension and concept.

A `Quantity` is one symbol of one paper. Symbols are reused between papers (`P` is an interval in one and a number of
clients in another), so every quantity names its *concept*, the cross-paper name with one definition and one dimension.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import floor, inf, isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.data_files import read_data_file

if TYPE_CHECKING:
    from fractions import Fraction

    import sympy as sp

SUM_TOLERANCE = 1e-9
AGREEMENT = 1e-9  # relative difference at which two values of one constant contradict each other
Source = Literal["given", "exact", "trajectory", "estimated", "derived"]
SOFT: Mapping[Source, str] = {
    "trajectory": "known only along one run",
    "estimated": "only estimated",
}  # sources that never guarantee
Free = Literal[False, True, "upwards", "downwards"]
OverRounds = Literal["", "mean", "maximum"]
Shape = tuple[()] | tuple[Literal["clients"]]


@dataclass(frozen=True)
class Constant:
    """A number (or a vector over clients) with the reason to believe it."""

    value: float | np.ndarray  # a float, or a one-dimensional array over clients
    # `given` by the user, `exact` on the whole domain, `trajectory` (a supremum along one run: never a guarantee beyond
    # that run), `estimated` (a lower estimate of a supremum, or a mean over seeds), or `derived` from other constants
    source: Source
    note: str = ""  # how it was obtained, in a few words


@dataclass(frozen=True)
class NoConstant:
    """No finite constant exists, because."""

    why: str


UNITS = {"f": "objective", "x": "parameter"}  # units that are one symbol, by name
_RAISED = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


@dataclass(frozen=True)
class Dimension:
    r"""A product of powers of the free units: of the objective (f), the parameters (x) and wall-clock time.

    For instance the smoothness has $[L] = f\,x^{-2}$ and the gradient noise $[\sigma] = f\,x^{-1}$.

    Example:
        >>> Dimension.of(f=1, x=-2) * Dimension.of(x=2)
        Dimension(exponents=(('f', 1),))
        >>> str(Dimension.of(f=1, x=-2))
        'f/x^2'
    """

    exponents: tuple[tuple[str, int | Fraction], ...] = ()

    @staticmethod
    def of(**powers: int | Fraction) -> Dimension:
        """The dimension with these exponents; zero exponents vanish."""
        return Dimension(tuple(sorted((unit, p) for unit, p in powers.items() if p)))

    def __mul__(self, other: Dimension) -> Dimension:
        powers = dict(self.exponents)
        for unit, power in other.exponents:
            powers[unit] = powers.get(unit, 0) + power
        return Dimension.of(**powers)

    def __truediv__(self, other: Dimension) -> Dimension:
        return self * other**-1

    def __pow__(self, power: int | Fraction) -> Dimension:
        return Dimension.of(**{unit: p * power for unit, p in self.exponents})

    @property
    def words(self) -> str:
        """The unit with its names, as on an axis.

        Example:
            >>> Dimension.of(f=2, x=-2).words, NONE.words
            ('objective\u00b2/parameter\u00b2', 'no unit')
        """
        words = str(self)
        for unit in dict(self.exponents):
            words = re.sub(rf"\b{unit}\b", UNITS.get(unit, unit), words)
        raised = re.sub(r"\^(\d+)\b", lambda found: found[1].translate(_RAISED), words)
        return raised if self.exponents else "no unit"

    def __str__(self) -> str:
        def factor(unit: str, power: int | Fraction) -> str:
            return unit if power == 1 else f"{unit}^{power}" if power.denominator == 1 else f"{unit}^({power})"

        above = [factor(u, p) for u, p in self.exponents if p > 0]
        below = [factor(u, -p) for u, p in self.exponents if p < 0]
        return (" ".join(above) or "1") + "".join(f"/{part}" for part in below)


NONE = Dimension()
OBJECTIVE = Dimension.of(f=1)
PARAMETER = Dimension.of(x=1)
GRADIENT = OBJECTIVE / PARAMETER
SMOOTHNESS = OBJECTIVE / PARAMETER**2
STEP = PARAMETER**2 / OBJECTIVE


@dataclass(frozen=True)
class Domain:
    """An interval, open or closed at each end, of reals or integers; `inf` itself is legal only where allowed.

    Example:
        >>> str(Domain(0, float("inf"), low_open=True))
        '(0, inf)'
        >>> str(Domain(1, 5, integer=True))
        'integers in [1, 5]'
    """

    low: float = 0.0
    high: float = float("inf")
    low_open: bool = False
    high_open: bool = False
    integer: bool = False
    infinite: bool = False

    def contains(self, value: float | np.ndarray) -> np.ndarray:
        """Elementwise membership; NaN belongs to nothing."""
        v = np.asarray(value, dtype=float)
        inside = (v > self.low) if self.low_open else (v >= self.low)
        inside &= (v < self.high) if self.high_open else (v <= self.high)
        inside &= np.isfinite(v) | (self.infinite & (v == np.inf))
        if self.integer:
            with np.errstate(invalid="ignore"):
                inside &= (v == np.floor(v)) | (self.infinite & (v == np.inf))
        return inside

    def contains_all(self, values: np.ndarray) -> bool:
        """Whether every entry belongs, without arrays of their size.

        Example:
            >>> Domain(1, 5, integer=True).contains_all(np.array([1.0, 5.0, 2.5]))
            False
        """
        if values.size == 1:
            return self._holds(values.item())
        flat = values.reshape(-1)
        pieces = [flat[i : i + 32768] for i in range(0, flat.size, 32768)]
        with np.errstate(invalid="ignore"):
            ends = np.array([end for piece in pieces for end in (piece.min(), piece.max())])  # nan if there is one
        if not self.contains(ends).all():
            return False
        return not self.integer or all(bool((piece == np.floor(piece)).all()) for piece in pieces)

    def _holds(self, v: float) -> bool:
        """As `contains`, for one number."""
        above = v > self.low if self.low_open else v >= self.low
        below = v < self.high if self.high_open else v <= self.high
        unbounded = self.infinite and v == inf
        return above and below and (unbounded or (isfinite(v) and not (self.integer and v != floor(v))))

    @property
    def whole_numbers(self) -> tuple[float, float]:
        """The ends of the whole numbers in it."""
        return (
            float(np.floor(self.low) + 1 if self.low_open else np.ceil(self.low)),
            float(np.ceil(self.high) - 1 if self.high_open else np.floor(self.high)),
        )

    def __str__(self) -> str:
        left = "(" if self.low_open else "["
        right = "]" if self.infinite or (np.isfinite(self.high) and not self.high_open) else ")"
        return f"{'integers in ' if self.integer else ''}{left}{self.low:g}, {self.high:g}{right}"


POSITIVE = Domain(low_open=True)
NONNEGATIVE = Domain()
COUNT = Domain(low=1, integer=True)
PROBABILITY = Domain(high=1, low_open=True)


@dataclass(frozen=True)
class Quantity:
    r"""One symbol of one paper.

    Args:
        name: how it is typed, e.g. `"gamma"`.
        latex: how the paper writes it, e.g. `r"\gamma"`.
        meaning: one phrase; units follow from `dimension`.
        concept: the cross-paper name, e.g. `"local_step_size"`; constants may be given by it.
        domain: the legal values.
        dimension: its unit in terms of f, x and time.
        shape: `()` for a number, `("clients",)` for one number per client.
        default: the value taken when the user gives none (a number), or None.
        total: what the entries of a vector sum to, or None.

    Example:
        >>> gamma = Quantity("gamma", r"\gamma", "local learning rate", "local_step_size", POSITIVE, STEP)
        >>> gamma.check(np.array(0.1))
        >>> gamma.check(np.array(-0.1))
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: gamma = -0.1 is outside its domain (0, inf): local learning rate
    """

    name: str
    latex: str
    meaning: str
    concept: str
    domain: Domain = NONNEGATIVE
    dimension: Dimension = NONE
    shape: Shape = ()
    default: float | None = field(default=None)
    total: float | None = None

    @cached_property
    def symbol(self) -> sp.Symbol:
        """The sympy symbol, with the assumptions its domain implies (a vector's symbol stands for its entries)."""
        from fedbounds.bounds.theory.notation_symbols import symbol  # sympy takes its time

        low, whole = self.domain.low, self.domain.integer and not self.domain.infinite
        return symbol(self.name, low < 0, low > 0 or (low == 0 and self.domain.low_open), whole)

    def check(self, value: np.ndarray) -> None:
        """Raise unless every entry lies in the domain and the entries of a vector have their sum.

        Raises:
            FedboundsError: names the first bad value and the legal range, or the sum.
        """
        if not self.domain.contains_all(value):
            inside = self.domain.contains(value)
            flat, bad = np.atleast_1d(value), np.flatnonzero(~np.atleast_1d(inside))
            index = np.unravel_index(bad[0], flat.shape)
            where = f"{self.name}[{','.join(map(str, index))}]" if np.ndim(value) else self.name
            raise FedboundsError(f"{where} = {flat[index]:.12g} is outside its domain {self.domain}: {self.meaning}")
        if self.total is not None:
            sums = np.atleast_1d(np.sum(value, axis=-1))
            wrong = sums[~np.isclose(sums, self.total, rtol=0, atol=SUM_TOLERANCE)]
            if wrong.size:
                raise FedboundsError(f"{self.name} sums to {wrong[0]:.12g}, not to {self.total:g}: {self.meaning}")


@dataclass(frozen=True)
class Derived:
    """A constant that may be given as a number or computed from its inputs; both, unequal, is an error.

    Args:
        name: the constant.
        inputs: the constants it is computed from.
        rule: a sympy expression in the inputs' symbols, or a numpy function of the inputs in order (clients last).
        why: how, in words.
        free: whether another value may be given although the inputs are there: any (a default rather than a
            definition), only a larger one (a bound, which may be loose: "upwards"), or only a smaller one.
        javascript: where the rule is a numpy function, the same in JavaScript: a function of the inputs, or the name
            of one in the paper package's `functions.js` ("" leaves the rule out of the explorer).
        over_rounds: how the value depends on the number of rounds T, where that is known: it is the mean over T rounds
            of nonnegative numbers (T times the value never falls with T), or the maximum over them (it never falls).

    Example:
        >>> Q = Derived("Q", ("p",), lambda p: p.mean(-1), "largest possible", free="upwards")
        >>> [bool(Q.admits(np.array(given), np.array(2.0))) for given in (1.0, 2.0, 3.0)]
        [False, True, True]
    """

    name: str
    inputs: tuple[str, ...]
    rule: sp.Expr | Callable[..., np.ndarray | float]
    why: str
    free: Free = False
    javascript: str = ""
    over_rounds: OverRounds = ""

    def admits(self, given: np.ndarray, derived: np.ndarray) -> np.ndarray:
        """Whether a given value may stand beside the derived one, elementwise."""
        equal = np.isclose(given, derived, rtol=AGREEMENT, atol=0)
        if self.free == "upwards":
            return equal | (given > derived)
        return equal | (given < derived) if self.free == "downwards" else equal | (self.free is True)


def length_of(vector: str, name: str) -> Derived:
    """The rule that there are as many clients as a vector over them has entries."""
    count = "entries => entries.length"
    return Derived(name, (vector,), _length, f"the length of {vector}", javascript=count)


def _length(vector: np.ndarray) -> float:
    return float(vector.shape[-1])


@dataclass(frozen=True)
class Meaning:
    """A quantity without its name, LaTeX and concept, which are the heading of its row in a table of a notation."""

    meaning: str
    domain: Domain = NONNEGATIVE
    dimension: Dimension = NONE
    shape: Shape = ()
    default: float | None = None
    total: float | None = None


class Notation(Mapping[str, Quantity]):
    """The symbols of one paper; looks a constant up by its symbol or by its concept.

    Example:
        >>> L = Quantity("L", "L", "smoothness", "smoothness", POSITIVE, SMOOTHNESS)
        >>> notation = Notation([L])
        >>> notation.resolve("smoothness").name
        'L'
    """

    def __init__(
        self,
        quantities: Sequence[Quantity] | Mapping[tuple[str, str, str], Meaning],
        floors: Sequence[Derived] = (),
    ) -> None:
        """The symbols, as quantities or as a table, and what they are never below (`floors`).

        Each floor is a rule whose value no given one may undercut.
        """
        if isinstance(quantities, Mapping):
            quantities = [
                Quantity(name, latex, m.meaning, concept, m.domain, m.dimension, m.shape, m.default, m.total)
                for (name, latex, concept), m in quantities.items()
            ]
        self.floors = tuple(floors)
        self._by_name = {quantity.name: quantity for quantity in quantities}
        self._by_concept = {quantity.concept: quantity for quantity in quantities}

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Pairs of counts of which the first is at most the second in every run: participants and clients."""
        pair = [self._by_concept.get(concept) for concept in ("participating_clients", "clients")]
        part, whole = (quantity and quantity.name for quantity in pair)
        return ((part, whole),) if part and whole else ()

    def __getitem__(self, name: str) -> Quantity:
        return self._by_name[name]

    def __iter__(self):
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __getattr__(self, name: str) -> sp.Symbol:
        """`notation.gamma` is the sympy symbol of gamma, so that results read like the paper."""
        try:
            return self.__dict__["_by_name"][name].symbol
        except KeyError:
            raise AttributeError(name) from None

    def resolve(self, name: str) -> Quantity | None:
        """The quantity with this symbol, else with this concept, else None."""
        return self._by_name.get(name) or self._by_concept.get(name)


def read_notation(module: str, floors: Sequence[Derived] = ()) -> Notation:
    """The notation in `notation.toml` beside a module, which is given by its `__file__`.

    Domains and dimensions are written as they are printed: "integers in [1, inf)", "f^2/x^2".
    """
    return Notation([read_quantity(name, **row) for name, row in read_data_file(module).items()], floors)


def read_quantity(
    name: str, domain: str = "[0, inf)", dimension: str = "1", per_client: bool = False, **rest: Any
) -> Quantity:
    """A symbol as it stands in `notation.toml`."""
    shape: Shape = ("clients",) if per_client else ()
    return Quantity(name, domain=read_domain(domain), dimension=read_dimension(dimension), shape=shape, **rest)


def read_domain(text: str) -> Domain:
    """A domain as it is printed; ValueError for anything else, and for one that is empty."""
    ((whole, left, low, high, right),) = re.findall(r"^(integers in )?([\[(])(.+), (.+)([\])])$", text)
    ends, bounded = (float(low), float(high)), high != "inf"
    found = Domain(*ends, left == "(", bounded and right == ")", bool(whole), infinite=not bounded and right == "]")
    least, most = found.whole_numbers if whole else ends
    alone = least == most and isfinite(least) and (bool(whole) or left + right == "[]")
    if not (least < most or alone):  # nan is neither
        raise ValueError(f"{text} is empty")
    return found


def read_dimension(text: str) -> Dimension:
    """A dimension as it is printed, such as "f^2/x^2" or "1"; ValueError for anything else."""
    if not re.fullmatch(r"(1|[a-z]+(\^\d+)?)( [a-z]+(\^\d+)?)*(/[a-z]+(\^\d+)?)*", text):
        raise ValueError(text)
    found = re.findall(r"(/?)([a-z]+)(?:\^(\d+))?", text)
    return Dimension.of(**{unit: int(power or 1) * (-1 if below else 1) for below, unit, power in found})


def dependencies(names: Iterable[str], rules: Sequence[Derived]) -> set[str]:
    """These constants, and those that they depend on by the rules, directly or through others.

    Example:
        >>> W = Derived("W", ("p", "K"), lambda p, K: K, "")
        >>> sorted(dependencies(["L", "W"], [W]))
        ['K', 'L', 'W', 'p']
    """
    found = {*names}
    while more := {i for rule in rules if rule.name in found for i in rule.inputs} - found:
        found |= more
    return found


def independent_constants(
    notation: Notation, needs: Iterable[str], rules: Sequence[Derived], names: Iterable[str]
) -> tuple[str, ...]:
    """Those of these constants, by symbol, that nothing of what is needed depends on, in the order of the notation."""
    given = {quantity.name for name in names if (quantity := notation.resolve(name)) is not None}
    return tuple(name for name in notation if name in given - dependencies(needs, rules))
