"""pfl-research's simulated backend, federated averaging, one process: `python in_pfl.py CHECK RACE ROUNDS THREADS`."""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from job import BATCH, COHORT, STEPS, Job, answer, batches
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByUser
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch_modules import module


class Model(torch.nn.Module):
    """What pfl asks of a model."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)

    def loss(self, x, y, eval=False):
        return F.cross_entropy(self.network(x), y)

    def metrics(self, x, y, eval=False):
        return {}


class Clock(TrainingProcessCallback):
    """Notes the time after every round."""

    def __init__(self, clock):
        self.clock, self.clocked = clock, []

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        self.clocked.append(self.clock())
        return False, Metrics()


def play(job: Job, rounds, clock):
    images, labels = torch.from_numpy(job.first), torch.from_numpy(job.second)
    rng, waiting = np.random.default_rng(1), []

    def samples_of(client):  # as many as the steps take, in their order
        own = torch.from_numpy(batches(rng, images.shape[1], 1).ravel())
        return Dataset((images[client, own], labels[client, own]), user_id=client)

    def draw():
        if not waiting:
            waiting.extend(rng.choice(len(images), min(COHORT, len(images)), replace=False).tolist())
        return waiting.pop()

    data = FederatedDataset(samples_of, draw)
    network, noted = Model(module([torch.from_numpy(part) for part in job.model])), Clock(clock)
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=10**9,
            train_cohort_size=min(COHORT, len(images)),
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=data, val_data=data, postprocessors=[WeightByUser()]),
        model=PyTorchModel(
            model=network,
            local_optimizer_create=torch.optim.SGD,
            central_optimizer=torch.optim.SGD(network.parameters(), 1.0),
        ),
        model_train_params=NNTrainHyperParams(
            local_num_epochs=None, local_num_steps=STEPS, local_learning_rate=job.size, local_batch_size=BATCH
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=256),
        callbacks=[noted],
    )
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy(), noted.clocked


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[4]))
    answer(play, "pfl", "torch")
