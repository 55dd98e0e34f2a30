"""Networks compared with the paper's theorems: along one run, and over T at the steps that a result sets."""

from dataclasses import replace

from fedbounds.figures.charts.networks import NetworkFamily, Networks, read_setting

RESULT = "fed-norm-sgda/theorem-1"
SETTING = read_setting("fed_norm_sgda")
CNN = NetworkFamily(
    name="network-rate-fair-cnn-small-smooth",
    result="fed-norm-sgda/theorem-1-at-its-steps",
    form="sharp",
    theorem=RESULT,
    symbols=("Lf", "sigmaL", "betaL", "sigmaG", "betaG", "Delta", "delta0"),
    problem={"kind": "fair-images", "dataset": "digits", "network": "cnn-small-smooth", "clients": 100,
             "partition": "dirichlet", "alpha": 100.0, "batch": 4, "regularization": 4.0},
    participation={"kind": "full", "clients": 100},
    pilot=({"kind": "fed-norm-sgda", "local_step_size": 1e-3, "local_ascent_step_size": 1e-3,
            "server_step_size": 1e-3, "server_ascent_step_size": 3e-3, "local_steps": 2}, 512),
    rounds=(64, 128, 256, 512, 2048, 16384),
    since=64,
    local_steps=2,
)  # fmt: skip
MLP = replace(
    CNN,
    name="network-rate-fair-mlp",
    problem={**CNN.problem, "network": "mlp", "regularization": 12.0},
    rounds=(256, 1024, 4096),
    since=256,
    points=256,
)
NETWORKS = Networks(
    RESULT,
    SETTING,
    "A CNN on digits against an adversary, under Theorem 1",
    "Fed-Norm-SGDA for fair classification: 10 clients, all taking part with 1 to 3 local steps on "
    "batches of 32; two convolutions with GELU. The adversary weighs the classes, and her best response "
    "is known: envelope and dual gap are exact, so no attack estimates the gap from below.",
    {"CNN, Theorem 1": CNN, "MLP (ReLU), Theorem 1": MLP},
    "Rates of networks at the steps of Theorem 1",
    "Fair classification of digits: 100 clients with nearly equal mixes of classes, all taking part with 2 local "
    "steps on batches of 4. CNN: two convolutions with GELU. MLP: 32 hidden units with ReLU, whose gradient "
    "jumps: its smoothness is the largest secant that was met. The adversary's regularization is 4 for the CNN (of 1, "
    "4 and 28 the one with the largest steps for x in pilot runs) and 12 for the MLP.",
)
