"""FedJAX's own federated averaging, its clients compiled: `python in_fedjax.py CHECK RACE ROUNDS THREADS`.

Its batches go through a client's samples in random order, again and again.
"""

import jax

if not hasattr(jax, "tree_map"):  # FedJAX 0.0.17 calls what newer versions of jax no longer have
    jax.tree_map = jax.tree_util.tree_map

import fedjax
import numpy as np
from compiled_xla import flat, loss, pairs
from job import BATCH, COHORT, STEPS, Job, answer


def play(job: Job, rounds, clock):
    fedjax.set_for_each_client_backend("jit")
    own = [fedjax.ClientDataset({"x": x, "y": y}) for x, y in zip(job.first, job.second, strict=True)]
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        jax.grad(lambda model, batch, key: loss(model, batch["x"], batch["y"])),
        fedjax.optimizers.sgd(job.size),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=BATCH, num_epochs=None, num_steps=STEPS, seed=0),
    )
    state, rng, clocked = algorithm.init(pairs(job.model)), np.random.default_rng(1), []
    for t in range(rounds):
        clients = rng.choice(len(own), min(COHORT, len(own)), replace=False)
        keys = jax.random.split(jax.random.PRNGKey(t), len(clients))
        state, _ = algorithm.apply(
            state, [(str(n).encode(), own[n], key) for n, key in zip(clients, keys, strict=True)]
        )
        jax.block_until_ready(state.params)
        clocked.append(clock())
    return flat(state.params), clocked


if __name__ == "__main__":
    answer(play, "fedjax", "jax")
