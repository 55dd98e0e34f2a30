"""The vocabulary of settings: the kinds on each axis, with their meanings and phrases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind on an axis: its name, its meaning, and the phrases for it."""

    name: str
    meaning: str
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Axis:
    """One property of a setting.

    Args:
        name: as in AXIS=KIND.
        question: the property as a phrase.
        kinds: by name, in order.
        usual: the default kind, which the output names ("" for none).
    """

    name: str
    question: str
    kinds: Mapping[str, Kind]
    usual: str = ""


def _axis(name: str, question: str, *kinds: tuple[str, str, str], usual: str = "") -> Axis:
    """An axis; each kind by its name, its meaning and its phrases, which commas separate."""
    made = [
        Kind(kind, meaning, tuple(p.strip() for p in said.split(",") if p.strip())) for kind, meaning, said in kinds
    ]
    return Axis(name, question, {kind.name: kind for kind in made}, usual)


_LISTED = (
    _axis(
        "objective",
        "what the objective is like in the parameters that minimize it",
        ("strongly-convex", "every client's function is strongly convex", "strongly convex"),
        ("convex", "every client's function is convex", "convex, merely convex, general convex"),
        ("non-convex", "nothing is known of convexity", "non-convex, nonconvex, deep learning, neural network"),
    ),
    _axis(
        "ascent",
        "the maximization, if the problem is min-max",
        ("none", "no maximization", "minimization, minimize, single objective"),
        (
            "strongly-concave",
            "every client's function is strongly concave in y",
            "strongly concave, strongly concave in y",
        ),
        ("pl", "the mean satisfies the PL inequality in y", "pl in y, nonconvex pl, polyak lojasiewicz in y"),
        ("concave", "every client's function is concave in y", "concave, concave in y"),
        (
            "one-point-concave",
            "every client's function is one-point concave in y, at a maximizer that all share",
            "one point concave, one point concave in y",
        ),
        ("non-concave", "nothing is known of concavity in y", "non-concave"),
        usual="none",
    ),
    _axis(
        "partition",
        "how the data are split over clients",
        (
            "horizontal",
            "different samples, with all their features",
            "horizontal, horizontal partition, horizontally partitioned, cross device, horizontal fl",
        ),
        (
            "vertical",
            "different features of the same samples, one client for each",
            "vertical, vertical partition, vertically partitioned, split features, vertical fl",
        ),
        (
            "tiered",
            "silos have different features, the clients of a silo different samples",
            "tiered, tiered partition, multi tier, vertical horizontal, both partitions, silos with clients",
        ),
        usual="horizontal",
    ),
    _axis(
        "participation",
        "which clients participate in a round",
        (
            "all",
            "all clients in every round, with equal weights",
            "full participation, all clients, all clients participate, everybody, everyone, full, all participate",
        ),
        (
            "uniform-sampling",
            "a fixed number, sampled uniformly without replacement, independently in every round",
            "uniform, uniform sampling, uniform without replacement, without replacement, sampled uniformly, "
            "client sampling, sampling without replacement, uniformly sampled clients, random sampling",
        ),
        (
            "with-replacement",
            "a fixed number, sampled uniformly with replacement, independently in every round",
            "with replacement, sampling with replacement, uniform with replacement",
        ),
        (
            "independent-rounds",
            "at least one client, sampled independently and from one distribution in every round, with equal means",
            "independent rounds, independent over rounds, iid rounds",
        ),
        (
            "coins-known-rates",
            "each client independently in every round, with its own known probability; a round may be empty",
            "known rates, bernoulli known rates, known participation statistics, known probabilities",
        ),
        (
            "coins-unknown-rates",
            "each client independently in every round, with its own unknown probability; a round may be empty",
            "unknown rates, bernoulli unknown rates, unknown participation statistics, unknown probabilities, "
            "unknown statistics",
        ),
        (
            "in-turn",
            "every client equally often in each window of P rounds, in a fixed order",
            "cyclic, cyclic participation, periodic, periodic participation, in turn, regularized, "
            "regularized participation, round robin",
        ),
        (
            "reshuffled",
            "every client equally often in each window of P rounds, in a random order for each window",
            "reshuffled, random reshuffling, permutation, shuffled, random permutations",
        ),
        (
            "mixing",
            "at least one client in every round, stationary and mixing, all clients equally often on average",
            "mixing, markov, markovian, markov chain, group markov, correlated over time, mixing participation",
        ),
        (
            "ergodic",
            "at least one client in every round, all clients equally often on average and in the long run",
            "ergodic, ergodic participation",
        ),
        (
            "arbitrary",
            "at least one client in every round, in any pattern that does not depend on the gradients",
            "arbitrary, arbitrary participation, any participation, recorded, adversarial participation, no pattern",
        ),
        (
            "depends-on-gradients",
            "participation depends on losses or gradients",
            "depends on gradients, chosen by loss, power of choice, biased selection, selected by loss",
        ),
    ),
    _axis(
        "compression",
        "the compression of updates",
        (
            "none",
            "updates are sent in full precision",
            "no compression, uncompressed, without compression, full precision",
        ),
        (
            "unbiased",
            "an unbiased operator whose error is at most q times the update: quantization, random sparsification",
            "unbiased compression, quantization, quantized, qsgd, random sparsification, rand k, relative error",
        ),
        (
            "masks",
            "signed random masks on fixed noise, as FedMRN's: their error does not shrink with the update",
            "masks, random masks, signed masks, masked random noise, fedmrn, masked noise",
        ),
        ("biased", "a biased operator: the largest entries, signs", "biased compression, top k, sign, signsgd"),
        usual="none",
    ),
    _axis(
        "local-steps",
        "how many local steps clients take between rounds",
        ("one", "one", "one local step, single local step, no local steps, synchronous, minibatch sgd"),
        (
            "alike",
            "the same number, of all clients and in all rounds",
            "local steps, several local steps, multiple local steps, equal local steps, many local steps, local sgd",
        ),
        (
            "different",
            "a different number for each client, the same in all rounds",
            "unequal local steps, different local steps, heterogeneous local steps, system heterogeneity",
        ),
        (
            "changing",
            "a number that changes from round to round or is random",
            "changing local steps, random local steps, time varying local steps",
        ),
    ),
    _axis(
        "heterogeneity",
        "the distance of clients' gradients from their mean",
        ("none", "zero: all clients have the same function", "iid, homogeneous, identical data, no heterogeneity"),
        (
            "bounded",
            "at most a constant, everywhere",
            "bounded heterogeneity, bounded divergence, bounded dissimilarity, bounded gradient divergence",
        ),
        (
            "relative",
            "at most a constant plus a multiple of the norm of the mean",
            "relative heterogeneity, gradient dissimilarity, relative dissimilarity",
        ),
        (
            "unbounded",
            "without bound, as quadratics of different curvature",
            "unbounded heterogeneity, arbitrary heterogeneity, arbitrary data",
        ),
    ),
    _axis(
        "noise",
        "the noise of a client's gradient",
        ("none", "no noise", "full gradients, deterministic, no noise, exact gradients, noiseless"),
        ("bounded", "unbiased, with at most a constant variance", "bounded variance, bounded noise"),
        (
            "growing",
            "unbiased, with a variance of at most a constant and a multiple of the squared gradient",
            "growing variance, growing noise, relative noise, multiplicative noise",
        ),
        ("heavy-tailed", "unbiased, with infinite variance", "heavy tailed, heavy tailed noise, infinite variance"),
    ),
    _axis(
        "gradients",
        "the norm of the gradients",
        ("bounded", "at most a constant, for every client", "bounded gradients, lipschitz functions"),
        ("unbounded", "no bound is known", "unbounded gradients, no gradient bound, gradients not bounded"),
    ),
    _axis(
        "smoothness",
        "the Lipschitz continuity of gradients",
        ("smooth", "every client's gradient is Lipschitz continuous", "smooth, lipschitz gradients"),
        ("non-smooth", "not known to be", "non-smooth, nonsmooth"),
        usual="smooth",
    ),
)
AXES: Mapping[str, Axis] = {axis.name: axis for axis in _LISTED}
_PARTIAL = " ".join(kind for kind in AXES["participation"].kinds if kind != "all")
_COINS = "coins-known-rates coins-unknown-rates"
_HETEROGENEOUS = "bounded relative unbounded"

# Phrases that leave several kinds.
GROUPS: Mapping[str, tuple[str, str]] = {
    "partial participation": ("participation", _PARTIAL),
    "partial": ("participation", _PARTIAL),
    "some clients": ("participation", _PARTIAL),
    "unknown": ("participation", "coins-unknown-rates arbitrary"),
    "unknown participation": ("participation", "coins-unknown-rates arbitrary"),
    "participation unknown": ("participation", "coins-unknown-rates arbitrary"),
    "bernoulli": ("participation", _COINS),
    "bernoulli participation": ("participation", _COINS),
    "coins": ("participation", _COINS),
    "independent coins": ("participation", _COINS),
    "minimax": ("ascent", "strongly-concave pl concave one-point-concave non-concave"),
    "min max": ("ascent", "strongly-concave pl concave one-point-concave non-concave"),
    "saddle point": ("ascent", "strongly-concave pl concave one-point-concave non-concave"),
    "heterogeneous": ("heterogeneity", _HETEROGENEOUS),
    "heterogeneous data": ("heterogeneity", _HETEROGENEOUS),
    "data heterogeneity": ("heterogeneity", _HETEROGENEOUS),
    "non-iid": ("heterogeneity", _HETEROGENEOUS),
    "noniid": ("heterogeneity", _HETEROGENEOUS),
    "stochastic gradients": ("noise", "bounded growing heavy-tailed"),
    "stochastic": ("noise", "bounded growing heavy-tailed"),
    "minibatches": ("noise", "bounded growing heavy-tailed"),
    "noisy": ("noise", "bounded growing heavy-tailed"),
    "compressed": ("compression", "unbiased masks biased"),
    "compression": ("compression", "unbiased masks biased"),
}
FILLERS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "with",
        "and",
        "or",
        "for",
        "my",
        "our",
        "is",
        "are",
        "we",
        "i",
        "have",
        "has",
        "data",
        "problem",
        "problems",
        "clients",
        "client",
        "updates",
        "functions",
        "function",
        "objective",
        "setting",
        "case",
        "by",
        "to",
        "under",
        "it",
        "each",
        "every",
    ]
)
