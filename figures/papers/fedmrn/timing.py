"""The time of a client's round: local steps, and the making of the message."""

from dataclasses import replace
from time import process_time

import numpy as np
import torch

from fedbounds.empirical.algorithms import LocalSGD, algorithm_from_spec
from fedbounds.empirical.algorithms.messages.compressor import Compressor
from fedbounds.empirical.papers.fedmrn.algorithms import Compressed, FedMRN, FedSparsify
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.problems import Problem, problem_from_spec
from fedbounds.figures.papers.fedmrn import experiments as ex

TRAINING, COMPRESSION = "local training", "compression"
STEPS, BATCH = 100, 64  # of a client's round in the paper, on FMNIST
MEASURED = (1, 3)  # steps


def parts(spec: dict[str, object]) -> tuple[LocalSGD, Compressor]:
    """The local steps of a method, and its codec."""
    method = algorithm_from_spec(spec)
    assert isinstance(method, FedMRN | Compressed | FedSparsify)
    if isinstance(method, Compressed):
        return LocalSGD(method.local_step_size, method.local_steps), method.codec
    return method.local, method.codec


def times(scale: ex.Scale, network: str, data: str | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Processor seconds of a client's local training and of its message: method to kind to (repeats,), one thread.

    A few steps are measured and extrapolated to `STEPS` on batches of `BATCH`. Methods that compress after training
    train as FedAvg; FedMRN's message is only the packing of its mask; FedPM is left out.
    """
    small = replace(scale, network=network, batch=BATCH, local_steps=MEASURED[1])
    methods = {label: ex.method(small, label, ex.start(label)) for label in scale.labels if label != ex.FEDPM}
    tasks = {
        task["labels"]["algorithm"]: task for task in ex.training_sweep(small, methods, ex.LABELS, data, seeds=1).tasks
    }
    problem = problem_from_spec(tasks[ex.FEDAVG]["problem"])
    made, threads = {label: parts(task["algorithm"]) for label, task in tasks.items()}, torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = {}
        for label, (local, codec) in made.items():
            plain = local.plain and label != ex.FEDAVG
            pairs = [_round(problem, local, codec, not plain) for _ in range(scale.repeats + 1)]
            training, message = np.array(pairs[1:]).T  # the first warms up
            found[label] = {TRAINING: found[ex.FEDAVG][TRAINING] if plain else training, COMPRESSION: message}
    finally:
        torch.set_num_threads(threads)
    return found


def _round(problem: Problem, local: LocalSGD, codec: Compressor, train: bool) -> tuple[float, float]:
    few, many = MEASURED
    short, _ = _once(problem, replace(local, steps=few), codec, train)
    longer, message = _once(problem, local, codec, train)
    return short + (STEPS - few) * (longer - short) / (many - few), message


def _once(problem: Problem, local: LocalSGD, codec: Compressor, train: bool) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    x, drawn = problem.initial_point(rng)[None, None], problem.draws(rng, 0, local.steps)
    assert drawn is not None
    left, client = iter(torch.from_numpy(drawn)[:, None, None]), torch.zeros(1, 1, dtype=torch.int64)
    begin = process_time()
    update = rng.standard_normal(x.shape[-1]).astype(np.float32)
    if train:
        words = torch.tensor([[int(rng.integers(2**53))]])
        begin = process_time()
        trained = local.update(x, lambda y: problem.stochastic_gradient(y, client, next(left)), words)
        update = trained[0, 0].numpy()
    middle = process_time()
    if isinstance(codec, MaskedNoise) and not local.plain:
        codec.encode_mask(update > 0, 1)
    else:
        codec.encode(update, rng)
    return middle - begin, process_time() - middle
