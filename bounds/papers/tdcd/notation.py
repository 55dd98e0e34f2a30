r"""The symbols of Das et al. (2022); `sigma` and `K` have one entry for each silo.

`Delta` is $f(\theta^0)-\mathbb Ef(\theta^T)$ as in (15); `Deltainf`, known a priori, replaces it where it is not given.
"""

from __future__ import annotations

from functools import partial

import sympy as sp

from fedbounds.bounds.theory.client_reductions import MaxOverClients, SumOverClients
from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import (
    COUNT,
    GRADIENT,
    OBJECTIVE,
    POSITIVE,
    SMOOTHNESS,
    STEP,
    Derived,
    Dimension,
    Notation,
    Quantity,
)

TIME = Dimension.of(time=1)
sigma, S, Deltainf = sp.symbols("sigma S Deltainf", nonnegative=True)
K = sp.Symbol("K", positive=True, integer=True)
TOTAL_NOISE = Derived("S", ("sigma",), SumOverClients(sigma**2), "the sum of sigma_j^2")
AVERAGED_NOISE = Derived("SK", ("sigma", "K"), SumOverClients(sigma**2 / K), "the sum of sigma_j^2/K_j")
REALIZED_GAP = Derived("Delta", ("Deltainf",), Deltainf, "f(x_T) is nowhere below inf f", free="downwards")
NOTATION = Notation(
    [
        Quantity("L", "L", "smoothness of the objective", "smoothness", POSITIVE, SMOOTHNESS),
        Quantity(
            "Lmax",
            "L_{max}",
            "largest Lipschitz constant, over all clients and blocks, of a client's stochastic partial gradient in its "
            "own block",
            "block_smoothness",
            POSITIVE,
            SMOOTHNESS,
        ),
        Quantity(
            "Delta",
            r"\Delta_T",
            "what f falls by in the run, f(x_0) - E f(x_T), or 0 if f rises; at most Deltainf, which stands in for it",
            "decrease_of_the_objective",
            dimension=OBJECTIVE,
        ),
        Quantity("Deltainf", r"\Delta_{\inf}", "initial gap f(x_0) - inf f", "initial_gap", dimension=OBJECTIVE),
        Quantity(
            "S",
            r"\left(\textstyle\sum_j\sigma_j^2\right)",
            "sum over blocks of the variance of a client's stochastic partial gradient",
            "block_gradient_noise",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "SK",
            r"\left(\textstyle\sum_j\sigma_j^2/K_j\right)",
            "sum over blocks of that variance over the number of the silo's clients",
            "averaged_block_gradient_noise",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "sigma",
            r"\sigma_j",
            "noise of a client's stochastic partial gradient in silo j (root of its variance)",
            "noise_of_each_block",
            dimension=GRADIENT,
            shape=("clients",),
        ),
        Quantity("K", "K_j", "number of clients of silo j", "clients_of_each_silo", COUNT, shape=("clients",)),
        Quantity("Q", "Q", "local steps per round", "local_steps", COUNT),
        Quantity("R", "R", "number of rounds", "rounds", COUNT),
        Quantity("eta", r"\eta", "learning rate", "local_step_size", POSITIVE, STEP),
        # Remark 5, and the latency of a round
        Quantity("c", "c", "step size times Q sqrt(R), which Remark 5 keeps fixed", "scaled_step", POSITIVE, STEP),
        Quantity("W", "W", "time that training may take", "time_budget", POSITIVE, TIME),
        Quantity("tcomm", "t_{comm}", "latency of one exchange over a link", "link_latency", dimension=TIME),
        Quantity("tcomp", "t_{comp}", "latency of one local step", "step_latency", POSITIVE, TIME),
        # what the lemmas leave open
        Quantity(
            "sigmaj",
            r"\sigma_j",
            "noise of a stochastic partial gradient in one silo (root of its variance)",
            "noise_of_one_block",
            dimension=GRADIENT,
        ),
        Quantity(
            "gradsq",
            r"\mathbb E\|\nabla_{(j)}\mathcal L\|^2",
            "squared norm of the partial gradient in block j where a round starts",
            "squared_partial_gradient",
            dimension=GRADIENT**2,
        ),
        Quantity(
            "G0",
            r"\textstyle\sum_j\frac1{K_j}\sum_k\mathbb E\|g_{k,j}^{t_0}\|^2",
            "sum over silos of the clients' mean squared stochastic gradient where a round starts",
            "squared_first_gradients",
            dimension=GRADIENT**2,
        ),
    ],
    floors=[
        TOTAL_NOISE,
        AVERAGED_NOISE,
        REALIZED_GAP,
        Derived("SK", ("S", "K"), S * MaxOverClients(1 / K), "no silo has fewer clients", free="downwards"),
        Derived("SK", ("S", "K"), S / MaxOverClients(K), "no silo has more clients", free="upwards"),
    ],
)
new_result = partial(paper_result, "tdcd", "Das et al. 2022", NOTATION)
