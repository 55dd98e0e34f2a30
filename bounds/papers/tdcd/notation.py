r"""The symbols of Das et al. (2022); `sigma` and `K` have one entry for each silo.

`Delta` is $f(\theta^0)-\mathbb Ef(\theta^T)$ as in (15); `Deltainf`, known a priori, replaces it where it is not given.
"""

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
    Meaning,
    Notation,
)

TIME = Dimension.of(time=1)
sigma, S, Deltainf = sp.symbols("sigma S Deltainf", nonnegative=True)
K = sp.Symbol("K", positive=True, integer=True)
TOTAL_NOISE = Derived("S", ("sigma",), SumOverClients(sigma**2), "the sum of sigma_j^2")
AVERAGED_NOISE = Derived("SK", ("sigma", "K"), SumOverClients(sigma**2 / K), "the sum of sigma_j^2/K_j")
REALIZED_GAP = Derived("Delta", ("Deltainf",), Deltainf, "f(x_T) is nowhere below inf f", free="downwards")
NOTATION = Notation(
    {
        ("L", "L", "smoothness"): Meaning("smoothness of the objective", POSITIVE, SMOOTHNESS),
        ("Lmax", "L_{max}", "block_smoothness"): Meaning(
            "largest Lipschitz constant, over all clients and blocks, of a client's stochastic partial gradient in its "
            "own block",
            POSITIVE,
            SMOOTHNESS,
        ),
        ("Delta", r"\Delta_T", "decrease_of_the_objective"): Meaning(
            "what f falls by in the run, f(x_0) - E f(x_T), or 0 if f rises; at most Deltainf, which stands in for it",
            dimension=OBJECTIVE,
        ),
        ("Deltainf", r"\Delta_{\inf}", "initial_gap"): Meaning("initial gap f(x_0) - inf f", dimension=OBJECTIVE),
        ("S", r"\left(\textstyle\sum_j\sigma_j^2\right)", "block_gradient_noise"): Meaning(
            "sum over blocks of the variance of a client's stochastic partial gradient", dimension=GRADIENT**2
        ),
        ("SK", r"\left(\textstyle\sum_j\sigma_j^2/K_j\right)", "averaged_block_gradient_noise"): Meaning(
            "sum over blocks of that variance over the number of the silo's clients", dimension=GRADIENT**2
        ),
        ("sigma", r"\sigma_j", "noise_of_each_block"): Meaning(
            "noise of a client's stochastic partial gradient in silo j (root of its variance)",
            dimension=GRADIENT,
            shape=("clients",),
        ),
        ("K", "K_j", "clients_of_each_silo"): Meaning("number of clients of silo j", COUNT, shape=("clients",)),
        ("Q", "Q", "local_steps"): Meaning("local steps per round", COUNT),
        ("R", "R", "rounds"): Meaning("number of rounds", COUNT),
        ("eta", r"\eta", "local_step_size"): Meaning("learning rate", POSITIVE, STEP),
        # Remark 5, and the latency of a round
        ("c", "c", "scaled_step"): Meaning("step size times Q sqrt(R), which Remark 5 keeps fixed", POSITIVE, STEP),
        ("W", "W", "time_budget"): Meaning("time that training may take", POSITIVE, TIME),
        ("tcomm", "t_{comm}", "link_latency"): Meaning("latency of one exchange over a link", dimension=TIME),
        ("tcomp", "t_{comp}", "step_latency"): Meaning("latency of one local step", POSITIVE, TIME),
        # what the lemmas leave open
        ("sigmaj", r"\sigma_j", "noise_of_one_block"): Meaning(
            "noise of a stochastic partial gradient in one silo (root of its variance)", dimension=GRADIENT
        ),
        ("gradsq", r"\mathbb E\|\nabla_{(j)}\mathcal L\|^2", "squared_partial_gradient"): Meaning(
            "squared norm of the partial gradient in block j where a round starts", dimension=GRADIENT**2
        ),
        ("G0", r"\textstyle\sum_j\frac1{K_j}\sum_k\mathbb E\|g_{k,j}^{t_0}\|^2", "squared_first_gradients"): Meaning(
            "sum over silos of the clients' mean squared stochastic gradient where a round starts",
            dimension=GRADIENT**2,
        ),
    },
    floors=[
        TOTAL_NOISE,
        AVERAGED_NOISE,
        REALIZED_GAP,
        Derived("SK", ("S", "K"), S * MaxOverClients(1 / K), "no silo has fewer clients", free="downwards"),
        Derived("SK", ("S", "K"), S / MaxOverClients(K), "no silo has more clients", free="upwards"),
    ],
)
new_result = partial(paper_result, "tdcd", "Das et al. 2022", NOTATION)
