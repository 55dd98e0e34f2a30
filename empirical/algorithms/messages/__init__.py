"""What clients send: compressors that make bytes of an update, and an update of bytes alone."""

from fedbounds.empirical.algorithms.messages.compressor import Compressor
from fedbounds.empirical.algorithms.messages.compressors import (
    Drive,
    Eden,
    FullPrecision,
    Partly,
    Sparsified,
    StochasticSign,
    TernGrad,
    TopK,
)
from fedbounds.empirical.algorithms.messages.noise import Noise

__all__ = [
    "Compressor",
    "Drive",
    "Eden",
    "FullPrecision",
    "Noise",
    "Partly",
    "Sparsified",
    "StochasticSign",
    "TernGrad",
    "TopK",
]
