r"""The symbols of Das et al. (2022); `sigma` and `K` have one entry for each silo.

`Delta` is $f(\theta^0)-\mathbb Ef(\theta^T)$ as in (15); `Deltainf`, known a priori, replaces it where it is not given.
"""

from functools import partial

import sympy as sp

from fedbounds.bounds.theory.client_reductions import MaxOverClients, SumOverClients
from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import Derived, read_notation

sigma, S, Deltainf = sp.symbols("sigma S Deltainf", nonnegative=True)
K = sp.Symbol("K", positive=True, integer=True)
TOTAL_NOISE = Derived("S", ("sigma",), SumOverClients(sigma**2), "the sum of sigma_j^2")
AVERAGED_NOISE = Derived("SK", ("sigma", "K"), SumOverClients(sigma**2 / K), "the sum of sigma_j^2/K_j")
REALIZED_GAP = Derived("Delta", ("Deltainf",), Deltainf, "f(x_T) is nowhere below inf f", free="downwards")
NOTATION = read_notation(
    __file__,
    [
        TOTAL_NOISE,
        AVERAGED_NOISE,
        REALIZED_GAP,
        Derived("SK", ("S", "K"), S * MaxOverClients(1 / K), "no silo has fewer clients", free="downwards"),
        Derived("SK", ("S", "K"), S / MaxOverClients(K), "no silo has more clients", free="upwards"),
    ],
)
new_result = partial(paper_result, "tdcd", "Das et al. 2022", NOTATION)
