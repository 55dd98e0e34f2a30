"""Networks compared with the paper's theorems: along one run, and over T at the steps that a result sets."""

from dataclasses import replace

from fedbounds.figures.charts.networks import NetworkFamily, Networks, read_setting

RESULT = "arbitrary-participation/theorem-3.1"
SETTING = read_setting("arbitrary_participation")
CNN = NetworkFamily(
    name="network-rate-in-turn-cnn-small-smooth",
    result="arbitrary-participation/corollary-3.2",
    form="explicit",
    theorem=RESULT,
    symbols=("L", "F", "sigma", "nu", "beta", "delta"),
    problem={"kind": "images", "dataset": "digits", "network": "cnn-small-smooth", "clients": 10,
             "partition": "majority-class", "similarity": 0.3, "batch": 24},
    participation={"kind": "cyclic", "clients": 10, "groups": 2},
    pilot=({"kind": "generalized-fedavg", "local_step_size": 0.005, "local_steps": 2, "interval": 2}, 2048),
    rounds=(128, 256, 512, 1024, 4096, 16384),
    since=256,
    local_steps=2,
    interval=2,
)  # fmt: skip
MLP = replace(
    CNN,
    name="network-rate-in-turn-mlp",
    problem={**CNN.problem, "network": "mlp"},
    pilot=({**CNN.pilot[0], "local_step_size": 0.02}, 1024),
    rounds=tuple(2**k for k in range(7, 15)),
    since=4096,
)
NETWORKS = Networks(
    RESULT,
    SETTING,
    "A CNN on glyphs under Theorem 3.1",
    "Generalized FedAvg: 10 clients with 1,000 glyphs in all, mostly of one class each; two cyclic "
    "groups of five, 2 local steps on batches of 16, amplified every 2 rounds; two convolutions with GELU.",
    {"CNN, Corollary 3.2": CNN, "MLP (ReLU), Corollary 3.2": MLP},
    "Rates of networks at the steps of Corollary 3.2",
    "Digits, 10 clients, mostly of one class each; two cyclic groups of five, 2 local steps on batches of 24, "
    "P = 2. CNN: two convolutions with GELU. MLP: 32 hidden units with ReLU, whose gradient jumps: its smoothness "
    "is the largest secant that was met.",
)
