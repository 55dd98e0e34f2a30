"""Slow twins of FedMRN and its baselines (Li et al. 2024): symbols and lines of the paper, and bytes on the wire.

Every function takes the problem, the weights q (T, N), the initial model x0 (d,) and the streams of one seed, and
returns the list of models w_0, ..., w_T. The server sees messages and nothing else. The last numbers of a model, where
they are batch normalization's, are sent as they are.
"""

import numpy as np
import torch

from fedbounds.empirical.algorithms.messages.compressor import Compressor
from fedbounds.empirical.algorithms.messages.compressors import Bits, Partly, TopK
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.papers.fedmrn.sending import partly
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.counter_rng import raw_bits, words_from_uniforms
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import Vector, local_update, step_sizes, stochastic_oracle


def client_seed(streams: Streams, t: int, n: int) -> int:
    """The word of client n in round t: its seed, out of which its other numbers are hashed too."""
    return int(words_from_uniforms(np.array(streams.generator("masks", t, n).random())))


def uniforms(word: int, purpose: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers in [0, 1) for each coordinate."""
    bits = raw_bits(torch.tensor(word), purpose, d).numpy()
    return bits % 2**24 / 2**24, (bits >> 24) % 2**24 / 2**24


def mask(u: float, n: float, chance: float, signed: bool, random: bool) -> int:
    """M(u, n), eqs. (6) and (7); without randomness by the signs."""
    if not random:
        same = u * n > 0
        return 1 if same else (-1 if signed else 0)
    p = min(max((u + n) / (2 * n) if signed else u / n, 0), 1)
    return 1 if chance < p else (-1 if signed else 0)


def clip(u: float, n: float, signed: bool) -> float:
    """u-bar."""
    low, high = (-abs(n), abs(n)) if signed else (min(0, n), max(0, n))
    return min(max(u, low), high)


def client(
    problem: Problem, w: Vector, k: int, t: int, streams: Streams, codec: MaskedNoise, eta: float, S: int,
    stochastic: bool, progressive: bool,
) -> bytes:  # fmt: skip
    """Algorithm 1, the client: its message."""
    s, d, signed = client_seed(streams, t, k), len(w) - problem.uncompressed, codec.masks == "signed"
    g, gamma = stochastic_oracle(problem, k, t, streams), step_sizes(problem, eta).double().numpy()
    n = codec.noise(s, d).astype(float)
    u = np.zeros(len(w))
    for tau in range(1, S + 1):
        chance, coin = uniforms(s, 200 + tau, d)
        u_hat = u.copy()
        for i in range(d):
            P = coin[i] < tau / S or not progressive
            u_hat[i] = n[i] * mask(u[i], n[i], chance[i], signed, stochastic) if P else clip(u[i], n[i], signed)
        u = u - gamma * g(w + torch.from_numpy(u_hat).to(w)).double().numpy()
    chance, _ = uniforms(s, 200, d)
    m = np.array([mask(u[i], n[i], chance[i], signed, stochastic) for i in range(d)])
    message, whole = codec.encode_mask(m == 1, s), partly(codec, problem.uncompressed)
    return whole.append_numbers(message, u[d:]) if isinstance(whole, Partly) else message


def fedmrn(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, local_step_size: float, local_steps: int,
    amplitude: float, law: str, masks: str, stochastic: bool, progressive: bool,
) -> list[Vector]:  # fmt: skip
    """Algorithm 1, the server."""
    codec = MaskedNoise(law, amplitude, masks)  # type: ignore[arg-type]
    whole = partly(codec, problem.uncompressed)
    w = [x0]
    for t in range(len(q)):
        received = torch.zeros_like(x0)
        for k in np.flatnonzero(q[t]).tolist():
            message = client(problem, w[t], k, t, streams, codec, local_step_size, local_steps, stochastic, progressive)
            received = received + q[t, k] * torch.from_numpy(whole.decode(message)).to(x0)
        w.append(w[t] + received)
    return w


def compressed(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, local_step_size: float, local_steps: int,
    compressor: Compressor,
) -> list[Vector]:  # fmt: skip
    """FedAvg with a message after the local steps."""
    codec, gamma = partly(compressor, problem.uncompressed), step_sizes(problem, local_step_size)
    w = [x0]
    for t in range(len(q)):
        w.append(w[t])
        for k in np.flatnonzero(q[t]).tolist():
            u = local_update(stochastic_oracle(problem, k, t, streams), w[t], gamma, local_steps)
            rng = np.random.Generator(np.random.Philox(key=client_seed(streams, t, k)))
            message = codec.encode(u.numpy(), rng)
            w[t + 1] = w[t + 1] + q[t, k] * torch.from_numpy(codec.decode(message)).to(x0)
    return w


def fedsparsify(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, local_step_size: float, local_steps: int,
    share: float,
) -> list[Vector]:  # fmt: skip
    """FedAvg whose clients keep fewer weights after each local step."""
    d, gamma = len(x0) - problem.uncompressed, step_sizes(problem, local_step_size)
    codec, least = partly(TopK(share), problem.uncompressed), TopK(share).count(d)
    w = [x0]
    for t in range(len(q)):
        w.append(w[t])
        for k in np.flatnonzero(q[t]).tolist():
            g, y = stochastic_oracle(problem, k, t, streams), w[t]
            for tau in range(1, local_steps + 1):
                y = y - gamma * g(y)
                left = least if tau == local_steps else max(least, round((1 - (1 - share) * tau / local_steps) * d))
                largest_first = np.argsort(-y[:d].abs().numpy(), kind="stable")
                y = y.clone()
                y[largest_first[left:].copy()] = 0
            message = codec.encode(y.numpy(), np.random.default_rng())  # nothing in it is random
            w[t + 1] = w[t + 1] + q[t, k] * (torch.from_numpy(codec.decode(message)).to(x0) - w[t])
    return w


def operated(u: np.ndarray, word: int, chance: np.ndarray, operator: str, a: float, keep: float | None) -> np.ndarray:
    """S(u)."""
    if operator == "sparsifier":
        assert keep is not None
        return np.array([u_i / keep if c < keep else 0 for u_i, c in zip(u, chance, strict=True)])
    if operator == "norm-scaled-sign":
        a = float(np.linalg.norm(u))
        return np.array([a if c < (1 + u_i / a) / 2 else -a for u_i, c in zip(u, chance, strict=True)]) if a else u
    n = a * MaskedNoise("bernoulli", 1.0).noise(word, len(u)).astype(float)
    return np.array([n[i] * mask(u[i], n[i], chance[i], True, True) for i in range(len(u))])


def analyzed(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, local_step_size: float, local_steps: int,
    operator: str, amplitude: float | None, amplitude_falls: bool, keep: float | None, step_shift: float | None,
    progressive: bool,
) -> list[Vector]:  # fmt: skip
    """Eqs. (13) to (15), iteration by iteration: the averages of all N clients."""
    S, N, d = local_steps, problem.clients, len(x0)
    w_bar, w, t_0 = [x0], [x0.numpy()] * N, 0
    for t in range(len(q)):
        eta, eta_0 = (
            local_step_size * ((step_shift + 1) / (step_shift + 1 + i) if step_shift is not None else 1)
            for i in (t, t_0)
        )
        a = (amplitude or 0) * (eta_0 / local_step_size if amplitude_falls else 1)
        words = words_from_uniforms(streams.generator("masks", t_0).random(N)).tolist()
        anchor, tau, v = w_bar[t_0].numpy(), t - t_0 + 1, []
        for k in range(N):
            u = w[k] - anchor
            chance, coin = uniforms(words[k], 200 + tau, d)
            u_hat = operated(u, words[k], chance, operator, a, keep)
            if progressive:
                for i in range(d):
                    if coin[i] >= tau / S:
                        u_hat[i] = clip(u[i], a, True) if operator == "signed-masks" else u[i]
            g = stochastic_oracle(problem, k, t, streams)
            v.append(w[k] - eta * g(torch.from_numpy(anchor + u_hat).to(x0)).numpy())
        w = v
        if (t + 1) % S == 0:
            received = [
                q[t, j] * operated(v[j] - anchor, words[j], uniforms(words[j], 200, d)[0], operator, a, keep)
                for j in np.flatnonzero(q[t]).tolist()
            ]
            w, t_0 = [anchor + sum(received)] * N, t + 1
        w_bar.append(torch.from_numpy(np.mean(w, axis=0)))
    return w_bar


def sigmoid(s: np.ndarray) -> np.ndarray:
    """The probability of a score."""
    return 1 / (1 + np.exp(-s))


def fedpm(
    problem: Problem, q: np.ndarray, x0: Vector, streams: Streams, *, local_step_size: float, local_steps: int,
    weight_scale: float, other_step_size: float, sampled: bool,
) -> list[Vector]:  # fmt: skip
    """FedPM: the models that the server's masks leave of the frozen weights."""
    d, codec = len(x0) - problem.uncompressed, partly(Bits(), problem.uncompressed)
    models, w, rest = [x0], weight_scale * x0.numpy()[:d], x0.numpy()[d:]
    s, gamma = np.zeros(d), step_sizes(problem, other_step_size).numpy()[d:]
    for t in range(len(q)):
        received, total = np.zeros(len(x0)), q[t].sum()
        for k in np.flatnonzero(q[t]).tolist():
            g, word = stochastic_oracle(problem, k, t, streams), client_seed(streams, t, k)
            own, own_rest = s.copy(), rest.copy()
            for tau in range(1, local_steps + 1):
                m = uniforms(word, 200 + tau, d)[0] < sigmoid(own)
                slope = g(torch.from_numpy(np.concatenate([m * w, own_rest])).to(x0)).numpy()
                own = own - local_step_size * slope[:d] * w * sigmoid(own) * (1 - sigmoid(own))
                own_rest = own_rest - gamma * slope[d:]
            m = uniforms(word, 200, d)[0] < sigmoid(own)
            message = Bits().encode(m.astype(float), np.random.default_rng())  # nothing in it is random
            message = codec.append_numbers(message, own_rest - rest) if isinstance(codec, Partly) else message
            received = received + q[t, k] * codec.decode(message).astype(float)
        if total:
            theta = 0.01 + 0.98 * received[:d] / total
            s, rest = np.log(theta / (1 - theta)), rest + received[d:]
        drawn = uniforms(int(words_from_uniforms(np.array(streams.generator("masks", t).random()))), 200, d)[0]
        kept = drawn < sigmoid(s) if sampled else sigmoid(s)
        models.append(torch.from_numpy(np.concatenate([kept * w, rest])).to(x0))
    return models


TWINS = {
    "fedmrn": fedmrn, "compressed": compressed, "fedsparsify": fedsparsify, "fedpm": fedpm, "fedmrn-analysis": analyzed,
}  # fmt: skip
