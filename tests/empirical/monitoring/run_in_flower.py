"""A server with real `ClientApp`s in Flower's simulation engine, in this process; prints what came of it as JSON.

Clients are those of a quadratic without noise. All are asked in every round; who is absent by the schedule fails.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from fedbounds import Bernoulli, ParticipationAccountant
from fedbounds.flower import Accounting, FedAU, GeneralizedFedAvg

ASKED = json.loads(sys.argv[1])
EIGENVALUES, CENTERS = np.array(ASKED["eigenvalues"]), np.array(ASKED["centers"])
PRESENT, SIZES = np.array(ASKED["present"]), ASKED["sizes"]
client, server, said = ClientApp(), ServerApp(), {}


@client.train()
def train(message: Message, context: Context) -> Message:
    n, t = int(context.node_config["partition-id"]), int(message.content["config"]["server-round"]) - 1
    if not PRESENT[t, n]:
        raise RuntimeError("absent")
    x = message.content["arrays"]["x"].numpy().copy()
    for _ in range(ASKED["local_steps"]):
        x -= ASKED["step_size"] * EIGENVALUES * (x - CENTERS[n])
    metrics = MetricRecord({"num-examples": SIZES[n], "partition": n})
    return Message(content=RecordDict({"arrays": ArrayRecord({"x": Array(x)}), "metrics": metrics}), reply_to=message)


def partition(reply: Message) -> int:
    return int(reply.content["metrics"]["partition"])


@server.main()
def main(grid: Grid, context: Context) -> None:
    clients, all_clients = len(CENTERS), dict(fraction_evaluate=0.0, min_available_nodes=len(CENTERS))
    strategies = {
        "generalized": (
            GeneralizedFedAvg(ASKED["interval"], ASKED["server_multiplier"], **all_clients),
            "num-examples",
        ),
        "fedau": (FedAU(clients, cutoff=ASKED["cutoff"], server_multiplier=1.5, **all_clients), None),
        "plain": (FedAvg(**all_clients), "num-examples"),
    }
    for name in ASKED["strategies"]:
        strategy, key = strategies[name]
        accountant = ParticipationAccountant(
            clients, Bernoulli(clients, ASKED["rates"]), intervals=[ASKED["interval"]], cutoff=ASKED["cutoff"]
        )
        accounting = Accounting(strategy, accountant, client_of=partition, weighted_by_key=key)
        models: list[list[float]] = []
        start = ArrayRecord({"x": Array(np.array(ASKED["start"]))})
        accounting.start(
            grid=grid,
            initial_arrays=start,
            num_rounds=len(PRESENT),
            evaluate_fn=lambda t, arrays, kept=models: kept.append(arrays["x"].numpy().tolist()),
        )
        said[name] = {"models": models, "account": accountant.to_json()}


if __name__ == "__main__":
    run_simulation(
        server,
        client,
        num_supernodes=len(CENTERS),
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"num_cpus": 1, "include_dashboard": False},
        },
    )
    print("\n" + json.dumps(said))
