"""Flower's simulation, its own FedAvg, clients in processes of Ray: `python in_flower.py CHECK RACE ROUNDS THREADS`.

The clock is on the wall: the work is done in other processes.
"""

import os
import time

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}

import numpy as np
import torch
import torch.nn.functional as F
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from job import COHORT, STEPS, Job, answer, batches
from torch_modules import module


def play(job: Job, rounds, _):
    clocked, ends, kept = [], [], {}
    app, server = ClientApp(), ServerApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        if not kept:
            torch.set_num_threads(1)
            kept["net"] = module([torch.from_numpy(part) for part in job.model])
            kept["data"] = torch.from_numpy(job.first), torch.from_numpy(job.second)
        client, network, (images, labels) = int(context.node_config["partition-id"]), kept["net"], kept["data"]
        network.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.SGD(network.parameters(), lr=job.size)
        for own in torch.from_numpy(batches(np.random.default_rng(), images.shape[1], 1)[0]):
            optimizer.zero_grad()
            F.cross_entropy(network(images[client, own]), labels[client, own]).backward()
            optimizer.step()
        sent = {"arrays": ArrayRecord(network.state_dict()), "metrics": MetricRecord({"num-examples": STEPS})}
        return Message(content=RecordDict(sent), reply_to=message)

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        network = module([torch.from_numpy(part) for part in job.model])
        share = min(COHORT, len(job.first)) / len(job.first)
        strategy = FedAvg(fraction_train=share, fraction_evaluate=0.0, min_available_nodes=len(job.first))
        found = strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord(network.state_dict()),
            num_rounds=rounds,
            train_config=ConfigRecord({"lr": job.size}),
            evaluate_fn=lambda done, arrays: clocked.append(time.perf_counter()),
        )
        network.load_state_dict(found.arrays.to_torch_state_dict())
        ends.append(torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy())

    run_simulation(
        server_app=server,
        client_app=app,
        num_supernodes=len(job.first),
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"num_cpus": os.cpu_count(), "include_dashboard": False},
        },
    )
    return ends[0], clocked[1:]  # the first is before round 1


if __name__ == "__main__":
    answer(play, "flwr", "ray", "torch")
