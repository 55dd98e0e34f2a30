"""A round as one compiled XLA program, as one writes it with jax: `python compiled_xla.py CHECK RACE ROUNDS THREADS`.

Clients in one batch (`vmap`); convolutions of a batch of networks are slow there, so that CNNs go one after another in
the program. With `replacement` as fifth argument batches are drawn with replacement, which is less to draw.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from job import BATCH, COHORT, STEPS, Job, answer, batches

NCHW = ("NCHW", "OIHW", "NCHW")


def logits(model, images):
    *convolutions, (hidden, shift), (last, offset) = model
    for weight, bias in convolutions:
        images = jax.lax.conv_general_dilated(images, weight, (1, 1), "SAME", dimension_numbers=NCHW)
        images = jax.nn.relu(images + bias[:, None, None])
        images = jax.lax.reduce_window(images, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return jax.nn.relu(images.reshape(len(images), -1) @ hidden.T + shift) @ last.T + offset


def loss(model, images, labels):
    found = jax.nn.log_softmax(logits(model, images))
    return -jnp.mean(jnp.take_along_axis(found, labels[:, None], 1))


def pairs(parts):
    return [tuple(jnp.asarray(part) for part in parts[k : k + 2]) for k in range(0, len(parts), 2)]


def flat(model):
    return np.concatenate([np.ravel(part) for part in jax.tree_util.tree_leaves(model)])


def play(job: Job, rounds, clock):
    first, second = jnp.asarray(job.first), jnp.asarray(job.second)
    quadratic, cohort = job.work == "quad", min(COHORT, len(job.first))
    model = jnp.asarray(job.model[0]) if quadratic else pairs(job.model)

    def local(model, client, samples, key):
        def step(here, drawn):
            own, key = drawn
            if quadratic:
                found = first[client] @ (here - second[client]) + job.noise * jax.random.normal(key, here.shape)
            else:
                found = jax.grad(loss)(here, first[client, own], second[client, own])
            return jax.tree_util.tree_map(lambda v, g: v - job.size * g, here, found), None

        return jax.lax.scan(step, model, (samples, jax.random.split(key, STEPS)))[0]

    @jax.jit
    def one_round(model, clients, samples, key):
        given = clients, samples, jax.random.split(key, cohort)
        if job.work == "cnn28":
            found = jax.lax.map(lambda own: local(model, *own), given)
        else:
            found = jax.vmap(local, in_axes=(None, 0, 0, 0))(model, *given)
        return jax.tree_util.tree_map(lambda v: v.mean(0), found)

    rng, clocked = np.random.default_rng(1), []
    for t in range(rounds):
        clients = rng.choice(len(job.first), cohort, replace=False)
        if quadratic:
            samples = np.zeros((cohort, STEPS), dtype=np.int64)
        elif sys.argv[-1] == "replacement" and rounds > 1:
            samples = rng.integers(0, job.first.shape[1], (cohort, STEPS, BATCH))
        else:
            samples = batches(rng, job.first.shape[1], cohort)
        model = jax.block_until_ready(one_round(model, clients, samples, jax.random.PRNGKey(t)))
        clocked.append(clock())
    return flat(model), clocked


if __name__ == "__main__":
    answer(play, "jax")
