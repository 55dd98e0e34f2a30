"""Networks compared with the paper's theorems: along one run, and over T at the steps that a result sets."""

from dataclasses import replace

from fedbounds.figures.charts.networks import NetworkFamily, Networks, read_setting

RESULT = "fedau/theorem-2"
SETTING = read_setting("fedau")
CNN = NetworkFamily(
    name="network-rate-fedau-cnn-small-smooth",
    result="fedau/corollary-4",
    form="sharp",
    theorem=RESULT,
    symbols=("L", "F", "sigma", "delta"),
    problem={"kind": "images", "dataset": "digits", "network": "cnn-small-smooth", "clients": 20,
             "partition": "class-mix", "alpha": 100.0, "batch": 16},
    participation={"kind": "bernoulli", "clients": 20, "probability": [0.9, 0.92, 0.94, 0.96, 0.98] * 4,
                   "normalize": False},
    pilot=({"kind": "fedau", "local_step_size": 0.005, "local_steps": 2, "cutoff": 2}, 2048),
    rounds=(128, 256, 512, 1024, 2048, 4096, 16384),
    since=512,
    local_steps=2,
)  # fmt: skip
MLP = replace(
    CNN,
    name="network-rate-fedau-mlp",
    problem={**CNN.problem, "network": "mlp"},
    pilot=({**CNN.pilot[0], "local_step_size": 0.02}, 1024),
    rounds=tuple(2**k for k in range(7, 13)),
    since=1024,
    points=1024,
)
NETWORKS = Networks(
    RESULT,
    SETTING,
    "A CNN on digits under Theorem 2",
    "FedAU with the cut-off K = 3: 20 clients with participation probabilities of 0.6 to 0.95, 2 local steps on "
    "batches of 8; two convolutions with GELU.",
    {"CNN, FedAU": CNN, "MLP (ReLU), FedAU": MLP},
    "Rates of networks at the steps of Corollary 4",
    "Digits, 20 clients with nearly equal mixes of classes and participation probabilities of 0.9 to 0.98, so that the "
    "cut-off is K = 2 for all T; 2 local steps on batches of 16. CNN: two convolutions with GELU. MLP: 32 hidden "
    "units with ReLU, whose gradient jumps: its smoothness is the largest secant that was met.",
)
