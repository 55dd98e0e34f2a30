"""Random streams: one run-seed, seven independent streams, and a place in each stream for every client and round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, quote

STREAMS = ("data", "initialization", "participation", "noise", "masks", "rates", "work")
COUNTERS = 3  # Philox counts in four 64-bit words; the lowest runs within a generator


@dataclass(frozen=True)
class Streams:
    r"""The randomness of one run, split into streams that can be held fixed one by one.

    Every stream has its own Philox key, derived from (seed, stream); a generator starts at the counter
    $(0, c_1, c_2, c_3)$, for instance (round, client). A client's randomness in a round is therefore a
    function of (seed, stream, round, client) alone: it does not depend on which other clients or seeds are
    computed.

    Args:
        seed: the seed of the run, an integer >= 0.
        fixed: streams held fixed, each with a seed of its own: `{"participation": 7}` gives every run-seed
            the same participation, so that an average over seeds is an expectation conditional on it.

    Raises:
        FedboundsError: a seed that is not an integer >= 0, or an unknown stream.

    Example:
        >>> streams = Streams(1)
        >>> streams.generator("noise", 5, 3).random() == streams.generator("noise", 5, 3).random()
        True
        >>> held = [Streams(seed, fixed={"participation": 7}) for seed in (1, 2)]
        >>> held[0].generator("participation").random() == held[1].generator("participation").random()
        True
        >>> held[0].generator("noise").random() == held[1].generator("noise").random()
        False
    """

    seed: int
    fixed: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, np.ndarray] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.fixed, Mapping):
            raise FedboundsError(f"streams = {quote(self.fixed)} must be a table like {{participation: 7}}")
        fixed = dict(self.fixed)
        for name in fixed:
            if name not in STREAMS:
                raise unknown_name("stream", str(name), STREAMS)
        keys = {}
        for index, name in enumerate(STREAMS):
            held = name in fixed
            seed = check_count(f"streams.{name}" if held else "seed", fixed[name] if held else self.seed, low=0)
            keys[name] = np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(2, np.uint64)
        object.__setattr__(self, "seed", check_count("seed", self.seed, low=0))
        object.__setattr__(self, "fixed", MappingProxyType(fixed))
        object.__setattr__(self, "keys", MappingProxyType(keys))

    def again(self, draw: int) -> Streams:
        """The streams of a client that is drawn several times in a round: these for draw 0, others for later draws.

        Example:
            >>> streams = Streams(1)
            >>> [streams.again(k).generator("noise", 5, 3).random() == streams.generator("noise", 5, 3).random()
            ...  for k in (0, 1)]
            [True, False]
        """
        if draw == 0:
            return self
        other = replace(self)
        seeds = {name: self.fixed.get(name, self.seed) for name in STREAMS}
        keys = {
            name: np.random.SeedSequence(seed, spawn_key=(STREAMS.index(name), draw)).generate_state(2, np.uint64)
            for name, seed in seeds.items()
        }
        object.__setattr__(other, "keys", MappingProxyType(keys))
        return other

    def __hash__(self) -> int:
        return hash((self.seed, tuple(sorted(self.fixed.items()))))

    def generator(self, stream: str, *counter: int) -> np.random.Generator:
        """A new generator at a place of a stream.

        Args:
            stream: one of `STREAMS`.
            counter: at most three integers in [0, 2^64), for instance (round, client).

        Raises:
            FedboundsError: an unknown stream or too many counters.
        """
        if stream not in STREAMS:
            raise unknown_name("stream", stream, STREAMS)
        if len(counter) > COUNTERS:
            raise FedboundsError(f"counter {counter} of stream {stream!r} has more than {COUNTERS} numbers")
        words = (0, *counter, *(0,) * (COUNTERS - len(counter)))
        return np.random.Generator(np.random.Philox(key=self.keys[stream], counter=words))


class GeneratorPool:
    """Generators that are reused at other places of the streams, which is cheaper than building new ones.

    `pool.aim(k, streams, stream, *counter)` draws the same as `streams.generator(stream, *counter)`; the generator in
    slot k is valid until slot k is aimed elsewhere.
    """

    def __init__(self) -> None:
        self._generators: list[np.random.Generator] = []
        self._counter = np.zeros(COUNTERS + 1, dtype=np.uint64)
        self._key = np.zeros(2, dtype=np.uint64)
        self._state = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": self._key},
            "buffer": np.zeros(4, dtype=np.uint64),
            "buffer_pos": 4,
            "has_uint32": 0,
            "uinteger": 0,
        }

    def aim(self, slot: int, streams: Streams, stream: str, *counter: int) -> np.random.Generator:
        """The generator of a slot, reset to a place of a stream; slots are taken into use in order."""
        if slot == len(self._generators):
            self._generators.append(np.random.Generator(np.random.Philox(0)))
        generator = self._generators[slot]
        self._counter[1:] = 0
        for place, word in enumerate(counter, start=1):
            self._counter[place] = word
        self._key[:] = streams.keys[stream]
        generator.bit_generator.state = self._state
        return generator
