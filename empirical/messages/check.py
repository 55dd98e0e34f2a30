r"""Is a compressor what it says it is? Measured on anybody's implementation: bias, relative error, bytes, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import stdtrit

from fedbounds.bounds.checks import check_count, check_memory
from fedbounds.bounds.errors import FedboundsError

CERTAIN = 1e-6  # how often a compressor without bias is called biased
ROUNDING = 1e-5  # of float32 sums, relative
DIRECTIONS = 16  # in which a bias is looked for


class Codec(Protocol):
    """What is asked of an implementation."""

    def encode(self, update: np.ndarray, rng: np.random.Generator, /) -> bytes:
        """The message for an update (d,)."""
        ...

    def decode(self, message: bytes, /) -> np.ndarray:
        """The update that the message means, (d,)."""
        ...


UPDATES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "normal": lambda d, rng: rng.standard_normal(d),
    "one entry": lambda d, rng: np.eye(1, d)[0],
    "all equal": lambda d, rng: np.ones(d),
    "alternating": lambda d, rng: np.where(np.arange(d) % 2, 1.0, -1.0),
    "heavy tails": lambda d, rng: np.sign(rng.standard_normal(d)) / rng.random(d).clip(1e-3),
    "one large": lambda d, rng: np.where(np.arange(d), 1 / (np.sqrt(d) + 1), 1.0),
}


@dataclass(frozen=True)
class CompressorTrial:
    r"""What many messages of one update x say.

    Attributes:
        update: which x, in words.
        norm: $\|x\|$.
        relative_error: the mean of $\|\mathcal S(x)-x\|^2/\|x\|^2$.
        standard_error: of that mean.
        bias: $\|E[\mathcal S(x)]-x\|/\|x\|$, estimated without the part that chance adds, at least 0.
        bias_error: how far a standard error of its square moves it, up or down.
        visible: the least bias along x itself, as a part of its length, that would be called one.
        evidence: in standard errors, the largest of the mean's distances from x in some directions, x among them.
        bits: sent for each number.
    """

    update: str
    norm: float
    relative_error: float
    standard_error: float
    bias: float
    bias_error: float
    visible: float
    evidence: float
    bits: float


@dataclass(frozen=True, eq=False)
class CompressorReport:
    """What was measured of a compressor; prints as a table.

    Attributes:
        size: d.
        messages: of each update.
        trials: one for each update.
        biased: whether a bias was seen, beyond chance.
        limit: in standard errors, what a direction must show to be called biased.
        refused: how a damaged message was met: `"refused"`, or what was accepted.
    """

    size: int
    messages: int
    trials: tuple[CompressorTrial, ...]
    biased: bool
    limit: float
    refused: str

    @property
    def relative_error(self) -> float:
        r"""The largest mean of $\|\mathcal S(x)-x\|^2/\|x\|^2$: no $q^2$ below it is one."""
        return max(trial.relative_error for trial in self.trials)

    @property
    def bits(self) -> float:
        """Bits sent for each number, at most."""
        return max(trial.bits for trial in self.trials)

    def __str__(self) -> str:
        worst = max(self.trials, key=lambda trial: (trial.evidence, trial.bias))
        mean = f"the mean of {self.messages} messages"
        lines = [
            f"biased: on '{worst.update}' {mean} is off by {worst.bias:.2g} of the norm, {worst.evidence:.1f} standard "
            "errors in one direction"
            if self.biased
            else f"no bias seen: {mean} is at most {worst.evidence:.1f} standard errors off in any direction that was "
            f"tried ('{worst.update}'), and {self.limit:.1f} would be called a bias",
            f"relative squared error q^2 at least {self.relative_error:.4g}; {self.bits:.4g} bits a number, "
            f"d = {self.size}",
            f"damaged messages: {self.refused}",
            f"{'update':12s} {'|S(x)-x|^2/|x|^2':>22s} {'bias/|x|':>18s} {'seen from':>10s} {'bits':>8s}",
        ]
        for t in self.trials:
            error = f"{t.relative_error:.4g} +- {t.standard_error:.1g}"
            bias = f"{t.bias:.2g} +- {t.bias_error:.1g}"
            lines.append(f"{t.update:12s} {error:>22s} {bias:>18s} {t.visible:10.2g} {t.bits:8.4g}")
        lines.append("(+- one standard error; updates too long or short by what is under 'seen from' are seen)")
        return "\n".join(lines)


def check_compressor(
    codec: Codec, size: int = 256, messages: int = 400, *, scale: float = 1.0, seed: int = 0
) -> CompressorReport:
    r"""Measures an implementation of a compressor on updates of several shapes.

    Whether it is unbiased is told from the mean of many messages of the same update, in several directions, at an error
    probability of about one in a million for all together, if whatever happens to a number by chance may be expected in
    50 messages: an entry that is sent with a smaller probability than 50 / messages may be in too few of them, and its
    absence looks like a bias. "No bias seen" is no proof: what did not happen in any of the messages is not known, and
    updates that come out too long or too short by less than what is printed under "seen from" are not seen.

    Args:
        codec: anything with `encode(update, rng) -> bytes` and `decode(bytes) -> update`.
        size: d.
        messages: of each update, at least 20.
        scale: by what the updates are multiplied, for compressors that know the size of updates beforehand.
        seed: of the updates and of the clients' randomness.

    Raises:
        FedboundsError: what it decodes is no finite vector (d,), or the same message means two things, or what it
            encodes is not bytes.

    Example:
        >>> from fedbounds.empirical.messages import StochasticSign, TopK
        >>> report = check_compressor(TopK(0.25), 64, 20)
        >>> report.biased, report.relative_error, report.refused
        (True, 0.75, 'refused')
        >>> check_compressor(StochasticSign(), 64, 100).biased
        False
    """
    size, messages = check_count("size", size), check_count("messages", messages, low=20)
    check_memory(f"size = {size} and messages = {messages}", 8 * size * messages)
    rng = np.random.default_rng(seed)
    limit = -float(stdtrit(messages - 1, CERTAIN / (2 * DIRECTIONS * len(UPDATES))))
    trials = tuple(_trial(codec, name, scale * make(size, rng), messages, rng, limit) for name, make in UPDATES.items())
    biased = any(trial.evidence > limit for trial in trials)
    return CompressorReport(size, messages, trials, biased, limit, _met(codec, scale * rng.standard_normal(size), rng))


def _trial(
    codec: Codec, name: str, x: np.ndarray, messages: int, rng: np.random.Generator, limit: float
) -> CompressorTrial:
    x = x.astype(np.float32).astype(np.float64)
    signs = rng.choice([-1.0, 1.0], (DIRECTIONS - 3, len(x)))
    directions = np.vstack([x, np.sign(x), np.ones_like(x), signs])
    meant, lengths = np.empty((messages, len(x))), np.empty(messages)
    for k in range(messages):
        message = codec.encode(x.copy(), rng)
        if not isinstance(message, bytes | bytearray):
            raise FedboundsError(f"encode returned {type(message).__name__}; expected bytes")
        meant[k], lengths[k] = _decoded(codec, message, len(x)), len(message)
        if not k and not np.array_equal(meant[k], _decoded(codec, message, len(x))):
            raise FedboundsError("the same message decodes to two updates: what decodes it is random")
    norm = float(np.linalg.norm(x))
    errors = np.square(meant - x).sum(1) / norm**2
    along = (meant - x) @ directions.T  # single coordinates may be hit too rarely for their mean to be normal
    shift = np.abs(along.mean(0)) - ROUNDING * np.abs(x) @ np.abs(directions).T  # float32 rounds, which is no bias
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = along.std(0, ddof=1) / messages**0.5
        evidence = np.where(shift > 0, shift / chance, 0.0)
    away, spread = meant.mean(0) - x, meant.std(0, ddof=1) / messages**0.5
    square = max(0.0, float(away @ away - spread @ spread))
    around = (meant - meant.mean(0)) / (messages * (messages - 1)) ** 0.5
    moved = around @ around.T if messages < len(x) else around.T @ around  # as the covariance of the mean, in squares
    error = float(4 * np.square(around @ away).sum() + 2 * np.square(moved).sum()) ** 0.5  # of the square of the bias
    bias = square**0.5
    bias_error = max((square + error) ** 0.5 - bias, bias - max(square - error, 0.0) ** 0.5)
    visible = limit * float(chance[0]) / norm**2 + ROUNDING  # the first direction is x
    return CompressorTrial(name, norm, float(errors.mean()), float(errors.std(ddof=1)) / messages**0.5, bias / norm,
                           bias_error / norm, visible, float(evidence.max()),
                           8 * float(lengths.max()) / len(x))  # fmt: skip


def _decoded(codec: Codec, message: bytes, size: int) -> np.ndarray:
    meant = np.asarray(codec.decode(bytes(message)), np.float64)
    if meant.shape != (size,):
        raise FedboundsError(f"decode returned shape {meant.shape}; expected finite numbers ({size},)")
    if not np.isfinite(meant).all():
        odd = np.flatnonzero(~np.isfinite(meant))
        raise FedboundsError(f"decode returned {meant[odd[0]]} at {odd[0]}, {len(odd)} of {size} numbers not finite")
    return meant


def _met(codec: Codec, x: np.ndarray, rng: np.random.Generator) -> str:
    """What becomes of messages that were damaged on the way."""
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
