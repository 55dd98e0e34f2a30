r"""Measurement of a compressor, of any implementation: bias, errors, bytes, state and refused messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.special import stdtrit

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory
from fedbounds.empirical.invariants.cases import digits
from fedbounds.empirical.invariants.report import BrokenInvariant, Counterexample, InvariantVerdict

CERTAIN = 1e-6  # how often a compressor without bias is called biased
ROUNDING = 1e-5  # of float32 sums, relative
DIRECTIONS = 16  # in which a bias is looked for
SINGLE = 12.0  # standard errors in one entry; 3e-12 for two values that are each expected in 50 messages
WIDE = 70_000  # the size, beyond two bytes, from which on a few messages are tried
SIZES = (1, 2, 3, 5, 12, 300, WIDE)  # that are tried besides the given size
FEW = 100  # messages of each update of these sizes
FEWEST = 5  # messages of a wide update, and of a compressor that states a bias
MISSING = 128  # messages of which none has an entry once in ten million, if each has it with a chance of 1/8
LEARNED = 64  # entries that count from which on half of the messages give a direction for the other half


class Codec(Protocol):
    """The methods that an implementation needs."""

    def encode(self, update: np.ndarray, rng: np.random.Generator, /) -> bytes:
        """The message for an update (d,)."""
        ...

    def decode(self, message: bytes, /) -> np.ndarray:
        """The update of a message, (d,)."""
        ...


UPDATES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "normal": lambda d, rng: rng.standard_normal(d),
    "one entry": lambda d, rng: np.eye(1, d)[0],
    "all equal": lambda d, rng: np.ones(d),
    "alternating": lambda d, rng: np.where(np.arange(d) % 2, 1.0, -1.0),
    "heavy tails": lambda d, rng: np.sign(rng.standard_normal(d)) / rng.random(d).clip(1e-3),
    "one large": lambda d, rng: np.where(np.arange(d), 1 / (np.sqrt(d) + 1), 1.0),
}


# entries in simple ratios, so that no random choice of usual compressors is rare
SMALL_UPDATES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "mixed": lambda d, rng: rng.choice([-1.0, -0.5, 0.5, 1.0], d),
    "negative with gaps": lambda d, rng: np.where(np.isin(np.arange(d) % 5, (2, 3)), 0.0, -1.0),
    "last entry": lambda d, rng: 0.3 * np.eye(1, d, d - 1)[0],
    "zero": lambda d, rng: np.zeros(d),
}
MAGNITUDES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "tiny": lambda d, rng: 1e-6 / 3 * rng.choice([-1.0, -0.5, 0.5, 1.0], d),
    "huge": lambda d, rng: 1e6 / 3 * rng.choice([-1.0, -0.5, 0.5, 1.0], d),
}
BY_ENTRY = ("all equal", "alternating")  # of these every entry is tested by itself


@dataclass(frozen=True)
class CompressorCase:
    """One update of a check."""

    name: str  # of `UPDATES`, `SMALL_UPDATES` or `MAGNITUDES`
    update: np.ndarray  # x, (d,)

    def __str__(self) -> str:
        shown = digits(self.update[:8]) + (" and so on" if len(self.update) > 8 else "")
        return f"update:  '{self.name}', d = {len(self.update)}, x = {shown}"


@dataclass(frozen=True)
class CompressorMeasurement:
    r"""The measurement of many messages of one update x."""

    update: str  # the name of x
    norm: float  # $\|x\|$
    relative_error: float  # the mean of $\|\mathcal S(x)-x\|^2/\|x\|^2$
    standard_error: float  # of that mean
    bias: float  # $\|E[\mathcal S(x)]-x\|/\|x\|$, estimated without the part that chance adds, at least 0
    bias_error: float  # the change of the bias by a standard error of its square, up or down
    visible: float  # the least bias along x itself, relative to its length, that would be detected
    evidence: float  # in standard errors, the largest of the mean's distances from x in some directions, x among them
    bits: float  # sent for each number


@dataclass(frozen=True, eq=False)
class CompressorReport:
    """The measurements of a compressor; prints as a table."""

    size: int  # d
    messages: int  # of each update
    measurements: tuple[CompressorMeasurement, ...]  # one for each update
    biased: bool  # whether a bias was detected in any size
    limit: float  # in standard errors, the deviation in a direction from which on it is a bias
    refused: str  # the response to damaged messages: `"refused"`, or what was accepted
    verdicts: tuple[InvariantVerdict, ...]  # one for each property that a compressor must have, or says that it has

    @property
    def broken(self) -> tuple[InvariantVerdict, ...]:
        """The verdicts of violated properties."""
        return tuple(verdict for verdict in self.verdicts if verdict.counterexample is not None)

    @property
    def passed(self) -> bool:
        """Whether nothing is broken."""
        return not self.broken

    def raise_if_broken(self) -> None:
        """For tests."""
        if self.broken:
            raise BrokenInvariant(str(self))

    @property
    def relative_error(self) -> float:
        r"""The largest mean of $\|\mathcal S(x)-x\|^2/\|x\|^2$: no $q^2$ below it is one."""
        return max(each.relative_error for each in self.measurements)

    @property
    def bits(self) -> float:
        """Bits sent for each number, at most."""
        return max(each.bits for each in self.measurements)

    def __str__(self) -> str:
        worst = max(self.measurements, key=lambda each: (each.evidence, each.bias))
        mean = f"the mean of {self.messages} messages"
        if worst.evidence > self.limit:
            seen = (
                f"biased: on '{worst.update}' {mean} is off by {worst.bias:.2g} of the norm, {worst.evidence:.1f} "
                "standard errors in one direction"
            )
        elif self.biased:
            seen = "biased in single entries, in half of the messages or in other sizes only"
        else:
            seen = (
                f"no bias detected: {mean} is at most {worst.evidence:.1f} standard errors off in any direction "
                f"tried ('{worst.update}'), and {self.limit:.1f} would be called a bias"
            )
        lines = [
            seen,
            f"relative squared error q^2 at least {self.relative_error:.4g}; {self.bits:.4g} bits a number, "
            f"d = {self.size}",
            f"damaged messages: {self.refused}",
            *(str(verdict) for verdict in self.verdicts),
            f"{'update':12s} {'|S(x)-x|^2/|x|^2':>22s} {'bias/|x|':>18s} {'detectable':>10s} {'bits':>8s}",
        ]
        for t in self.measurements:
            error = f"{t.relative_error:.4g} +- {t.standard_error:.1g}"
            bias = f"{t.bias:.2g} +- {t.bias_error:.1g}"
            lines.append(f"{t.update:12s} {error:>22s} {bias:>18s} {t.visible:10.2g} {t.bits:8.4g}")
        lines.append("(+- one standard error; a relative error in length above 'detectable' is detected)")
        return "\n".join(lines)


def check_compressor(
    codec: Codec,
    size: int = 256,
    messages: int = 400,
    *,
    scale: float | None = None,
    seed: int = 0,
    sizes: Sequence[int] = SIZES,
) -> CompressorReport:
    r"""Measures an implementation of a compressor on updates of several shapes and sizes.

    Bias is tested on the mean of many messages of the same update, in several directions, at an error
    probability of about one in a million for all together, if whatever happens to a number by chance may be expected in
    50 messages: an entry that is sent with a smaller probability than 50 / messages may be in too few of them, and its
    absence looks like a bias. "No bias detected" is not a proof: events that occur in none of the messages are unknown,
    and a relative error in the length of an update below the printed "detectable" is not detected.

    A compressor is taken to be unbiased unless it says `unbiased = False`. If it has methods `relative_error(size)`,
    `squared_error(update)` or `message_bytes(size)`, what they state is compared with what is measured. If it says
    `refuses_damaged = True`, one that accepts a damaged message with another meaning is broken; otherwise the report
    says what is accepted.

    Args:
        codec: anything with `encode(update, rng) -> bytes` and `decode(bytes) -> update`.
        size: d.
        messages: of each update, at least 20.
        scale: by what the updates are multiplied, for compressors that know the size of updates beforehand; if not
            given, some updates are as small as 1e-7 and some as large as 1e6.
        seed: of the updates and of the clients' randomness.
        sizes: other d that are tried with up to 100 messages of each of six updates, zero among them, and from 70,000
            on with five of one; none for a compressor of one size.

    Returns:
        The table of what was measured, and a verdict for each property: "unbiased", "every size", "stated error",
        "stated length", "in place" (the largest entry comes out where it was), "damaged messages" (they are refused),
        "unchanged arguments" (`encode` leaves the update as it is) and "repeated" (the same update and the same state
        of `rng` give the same message, whatever was encoded before).

    Raises:
        FedboundsError: what it decodes is no finite vector (d,), or the same message means two things, or what it
            encodes is not bytes.

    Example:
        >>> from fedbounds.empirical.algorithms.messages import StochasticSign, TopK
        >>> report = check_compressor(TopK(0.25), 64, 20)
        >>> report.biased, report.relative_error, report.refused, report.passed
        (True, 0.75, 'refused', True)
        >>> check_compressor(StochasticSign(), 64, 100).biased
        False
    """
    size, messages = check_count("size", size), check_count("messages", messages, low=20)
    sizes = tuple(check_count("sizes", each) for each in sizes if each != size)
    check_memory(f"size = {size} and messages = {messages}", 8 * size * messages)
    rng = np.random.default_rng(seed)
    others = SMALL_UPDATES | (MAGNITUDES if scale is None else {})
    scale = 1.0 if scale is None else scale
    tests = (DIRECTIONS + 1) * (len(UPDATES) + len(others) * len(sizes))
    checked = _CompressorChecks(codec, rng, tests)
    made = (CompressorCase(name, _single_precision(scale * make(size, rng))) for name, make in UPDATES.items())
    measurements = tuple(checked.measure(case, messages) for case in made)
    biased = checked.biased
    for each in sizes:
        for name, make in others.items():
            if each < WIDE or name == "mixed":
                few = FEW if each < WIDE else FEWEST
                checked.measure_size(
                    CompressorCase(name, _single_precision(scale * make(each, rng))), min(few, messages)
                )
        if each >= WIDE or not checked.unbiased:  # elsewhere it would be a bias
            largest = np.append(np.full(each - 1, 1e-3), 0.3)
            checked.attempt(CompressorCase("last largest", _single_precision(scale * largest)), checked.check_place)
    for each in sorted({size, *sizes[-1:]}):
        checked.repeat(CompressorCase("normal", _single_precision(scale * rng.standard_normal(each))))
    damaged = CompressorCase("normal", _single_precision(scale * rng.standard_normal(size)))
    refused = checked.send_damaged(damaged)
    limit = checked.limit(messages)
    return CompressorReport(size, messages, measurements, biased or checked.biased, limit, refused, checked.verdicts())


def _single_precision(update: np.ndarray) -> np.ndarray:
    return update.astype(np.float32).astype(np.float64)


PROPERTIES = {
    "unbiased": "The mean of many messages is the update.",
    "every size": "Updates of every size, zero among them, come out as finite vectors of that size.",
    "stated error": "The mean squared error is the stated one, and at most the stated part of the squared norm.",
    "stated length": "Messages are as long as stated.",
    "in place": "The largest entry comes out where it was, with its sign, in some message.",
    "damaged messages": "Messages that were damaged on the way are refused.",
    "unchanged arguments": "What is encoded is left as it is.",
    "repeated": "The same update and the same random numbers give the same message.",
}


@dataclass
class _CompressorChecks:
    """The checks of a compressor, and the first counterexample of each property."""

    codec: Any
    rng: np.random.Generator
    tests: int
    found: dict[str, Counterexample] = field(default_factory=dict)
    tests_of: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROPERTIES, 0))
    biased: bool = False
    accepts: str = ""

    @property
    def unbiased(self) -> bool:
        """Whether it claims to be unbiased, the default."""
        return bool(getattr(self.codec, "unbiased", True))

    def limit(self, messages: int) -> float:
        """The deviation that is a bias, in standard errors."""
        return -float(stdtrit(messages - 1, CERTAIN / (2 * self.tests)))

    def note(self, name: str, case: CompressorCase, problem: str | None) -> None:
        """Count one test of a property, and keep its fault, if any."""
        self.tests_of[name] += 1
        if problem is not None:
            self.found.setdefault(name, Counterexample(case, problem))

    def verdicts(self) -> tuple[InvariantVerdict, ...]:
        """One for each property."""
        skipped = {name: "it states none" for name, count in self.tests_of.items() if not count}
        if not self.unbiased:
            skipped["unbiased"] = "it says unbiased = False"
        if "every size" in skipped:
            skipped["every size"] = "no other sizes are given"
        if "in place" in skipped:
            skipped["in place"] = "it is unbiased, and no other sizes are given"
        if "damaged messages" in skipped:
            skipped["damaged messages"] = f"it does not say refuses_damaged = True; they are {self.accepts}"
        return tuple(
            InvariantVerdict(name, says, self.tests_of[name], self.found.get(name), skipped.get(name))
            for name, says in PROPERTIES.items()
        )

    def measure_size(self, case: CompressorCase, messages: int) -> None:
        """Measure an update of another size, in which it may fail."""
        self.attempt(case, lambda case: self.measure(case, messages if self.unbiased else min(messages, FEWEST)))

    def attempt(self, case: CompressorCase, of: Callable[[CompressorCase], object]) -> None:
        """A check that may raise in another size."""
        problem = None
        try:
            of(case)
        except Exception as error:
            problem = str(error) if isinstance(error, FedboundsError) else f"it raised {type(error).__name__}: {error}"
        self.note("every size", case, problem)

    def check_place(self, case: CompressorCase) -> None:
        """Whether the largest entry comes out, in some of the messages."""
        x, elsewhere = case.update, None
        place = int(np.abs(x).argmax())
        for _ in range(MISSING):
            meant = _decode(self.codec, bytes(self.codec.encode(x.copy(), self.rng)), len(x))
            if meant[place] * x[place] > 0:
                elsewhere = None
                break
            elsewhere = int(np.abs(meant).argmax()) if meant.any() else elsewhere
        problem = f"the largest entry, {x[place]:g} at {place}, is in none of the messages, and that at {elsewhere} is"
        self.note("in place", case, None if elsewhere is None else problem)

    def send_damaged(self, case: CompressorCase) -> str:
        """The response to damaged messages; a verdict if it claims to refuse them."""
        self.accepts = _response_to_damage(self.codec, case.update, self.rng)
        if getattr(self.codec, "refuses_damaged", False):
            self.note("damaged messages", case, None if self.accepts == "refused" else f"they are {self.accepts}")
        return self.accepts

    def measure(self, case: CompressorCase, messages: int) -> CompressorMeasurement:
        """Many messages of one update."""
        x, codec, d = case.update, self.codec, len(case.update)
        if d < WIDE:
            signs = self.rng.choice([-1.0, 1.0], (DIRECTIONS - 3, d))
            directions = np.vstack([x, np.sign(x), np.ones_like(x), signs])
        else:
            directions = np.vstack([x, np.where(np.arange(d) < 2**16, 0.0, x)])
        meant, lengths, unchanged = np.empty((messages, d)), np.empty(messages), True
        for k in range(messages):
            given = x.copy()
            message = codec.encode(given, self.rng)
            unchanged &= np.array_equal(given, x)
            if not isinstance(message, bytes | bytearray):
                raise FedboundsError(f"encode returned {type(message).__name__}; expected bytes")
            message = bytes(message)
            meant[k], lengths[k] = _decode(codec, message, d), len(message)
            if not k and not np.array_equal(meant[k], _decode(codec, message, d)):
                raise FedboundsError("the same message decodes to two updates: what decodes it is random")
        self.note("unchanged arguments", case, None if unchanged else "encode changed the update that it was given")
        norm, limit = float(np.linalg.norm(x)), self.limit(messages)
        shift, chance = _mean_errors(meant, x, directions)
        evidence = _standardize(shift, chance)
        largest, allowed, where = evidence.max(), limit, "in one direction"
        if case.name in BY_ENTRY and largest <= limit:
            alone = _standardize(*_mean_errors(meant, x, np.eye(d)))
            largest, allowed, where = alone.max(), SINGLE, f"in entry {alone.argmax()}"
        half = messages // 2
        learned = (meant[:half] - x).mean(0)
        if largest <= allowed and half >= FEW and np.abs(learned).sum() ** 2 >= LEARNED * (learned @ learned) > 0:
            off = _mean_errors(meant[half:], x, learned[None])  # few entries show in no fixed direction
            seen = _standardize(*off)
            if seen.max() > self.limit(half) + 1:
                largest, allowed, where = seen.max(), self.limit(half) + 1, "where the first half of them is off"
        far = bool(largest > allowed)
        problem = (
            f"the mean of {messages} messages is {largest:.1f} standard errors off {where}, and {allowed:.1f} is a "
            "bias; if one is meant, set unbiased = False"
        )
        self.biased |= far
        self.note("unbiased", case, problem if far and self.unbiased else None)
        errors = np.square(meant - x).sum(1)
        self._check_stated_errors(case, errors, limit)
        self._check_stated_length(case, lengths)
        away, spread = meant.mean(0) - x, meant.std(0, ddof=1) / messages**0.5
        square = max(0.0, float(away @ away - spread @ spread))
        around = (meant - meant.mean(0)) / (messages * (messages - 1)) ** 0.5
        moved = around @ around.T if messages < d else around.T @ around  # as the covariance of the mean, in squares
        error = float(4 * np.square(around @ away).sum() + 2 * np.square(moved).sum()) ** 0.5  # of the squared bias
        bias, unit = square**0.5, norm or 1.0
        bias_error = max((square + error) ** 0.5 - bias, bias - max(square - error, 0.0) ** 0.5)
        visible = limit * float(chance[0]) / unit**2 + ROUNDING  # the first direction is x
        return CompressorMeasurement(
            case.name, norm, float(errors.mean()) / unit**2, float(errors.std(ddof=1)) / unit**2 / messages**0.5,
            bias / unit, bias_error / unit, visible, float(evidence.max()), 8 * float(lengths.max()) / d,
        )  # fmt: skip

    def _check_stated_errors(self, case: CompressorCase, errors: np.ndarray, limit: float) -> None:
        square = float(case.update @ case.update)
        within = limit * float(errors.std(ddof=1)) / len(errors) ** 0.5 + ROUNDING * square
        mean = float(errors.mean())
        part, exact = self._value_of("relative_error", len(case.update)), self._value_of("squared_error", case.update)
        if part is not None:
            over = mean > part * square + within
            problem = f"the mean of |S(x)-x|^2 is {mean:.6g}, and relative_error states at most {part * square:.6g}"
            self.note("stated error", case, problem if over else None)
        if exact is not None and case.name not in ("heavy tails", "normal"):  # there the large errors may be rare
            problem = f"the mean of |S(x)-x|^2 is {mean:.6g}, and squared_error states {exact:.6g}"
            self.note("stated error", case, problem if abs(mean - exact) > within + ROUNDING * exact else None)

    def _check_stated_length(self, case: CompressorCase, lengths: np.ndarray) -> None:
        stated = self._value_of("message_bytes", len(case.update))
        if stated is not None:
            wrong = lengths[lengths != stated]
            problem = f"a message has {wrong[0]:.0f} bytes, and message_bytes states {stated:g}" if len(wrong) else None
            self.note("stated length", case, problem)

    def _value_of(self, name: str, of: Any) -> float | None:
        """A value that the compressor states, or None."""
        says = getattr(self.codec, name, None)
        stated: Any = says(of) if callable(says) else None
        return stated

    def repeat(self, case: CompressorCase) -> None:
        """The same message again, after others, one and two of them."""
        other = CompressorCase(case.name, -case.update[::-1])
        order = [(case, 1), (other, 2), (case, 1), (other, 2), (other, 2), (case, 1)]
        made = [bytes(self.codec.encode(of.update.copy(), np.random.default_rng(state))) for of, state in order]
        problem = "encoded again with the same state of rng, after another, it is another message"
        self.note("repeated", case, None if made[0] == made[2] == made[5] else problem)


def _mean_errors(meant: np.ndarray, x: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far the mean is from x in some directions, beyond rounding, and the standard errors of that."""
    along = (meant - x) @ directions.T
    shift = np.abs(along.mean(0)) - ROUNDING * np.abs(x) @ np.abs(directions).T  # float32 rounds, which is no bias
    return shift, along.std(0, ddof=1) / len(meant) ** 0.5


def _standardize(shift: np.ndarray, chance: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(shift > 0, shift / chance, 0.0)


def _decode(codec: Codec, message: bytes, size: int) -> np.ndarray:
    meant = np.asarray(codec.decode(bytes(message)), np.float64)
    if meant.shape != (size,):
        raise FedboundsError(f"decode returned shape {meant.shape}; expected finite numbers ({size},)")
    if not np.isfinite(meant).all():
        odd = np.flatnonzero(~np.isfinite(meant))
        raise FedboundsError(f"decode returned {meant[odd[0]]} at {odd[0]}, {len(odd)} of {size} numbers not finite")
    return meant


def _response_to_damage(codec: Codec, x: np.ndarray, rng: np.random.Generator) -> str:
    """Which damaged messages are accepted, or "refused"."""
    message = bytes(codec.encode(x, rng))
    meant = np.asarray(codec.decode(message))
    flipped = bytearray(message)
    flipped[len(message) // 2] ^= 16
    damaged = {"cut short": message[:-1], "one byte too long": message + b"\0", "one bit flipped": bytes(flipped)}
    accepted = []
    for what, wrong in damaged.items():
        try:
            found = np.asarray(codec.decode(wrong))
        except Exception:  # however it refuses
            continue
        if found.shape != meant.shape or not np.array_equal(found, meant):
            accepted.append(what)
    return f"accepted, with another meaning: {', '.join(accepted)}" if accepted else "refused"
