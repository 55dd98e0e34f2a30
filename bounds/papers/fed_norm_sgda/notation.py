"""The symbols of Sharma et al. (2023); `sigmaL` and `sigmaG` are roots, `R` is a squared radius."""

from functools import partial

import numpy as np
import sympy as sp

from fedbounds.bounds.theory.result import paper_result
from fedbounds.bounds.theory.symbols import Derived, read_notation

FLAT = "|a_i|_2^2 >= |a_i|_1^2/tau_i: Cauchy-Schwarz"
ON_SIMPLEX = "the weights sum to one"

NOTATION = read_notation(
    __file__,
    [
        Derived(name, inputs, rule, why, "upwards", javascript)
        for name, inputs, rule, why, javascript in (
            ("A_w", ("taueff", "taubar"), np.divide, f"{FLAT}, and {ON_SIMPLEX}", "(above, below) => above / below"),
            (
                "A_w",
                ("taueff", "w", "tau"),
                lambda t, w, tau: t * w.shape[-1] * (w**2 / tau).sum(-1),
                FLAT,
                "least_noise_of_the_mean",
            ),
            ("B_w", ("taueff", "taubar"), np.divide, f"{FLAT}, and {ON_SIMPLEX}", "(above, below) => above / below"),
            (
                "B_w",
                ("taueff", "w", "tau"),
                lambda t, w, tau: t * w.shape[-1] * (w / tau).max(-1),
                FLAT,
                "least_growing_noise",
            ),
            ("E_w", (), sp.Integer(1), ON_SIMPLEX, ""),
            (
                "chi2",
                ("p", "E_w"),
                lambda p, E_w: p.shape[-1] * (p**2).sum(-1) / E_w - 1,
                "every w_i is at most E_w/n",
                "least_mismatch",
            ),
            ("taubar", (), sp.Integer(1), "a client takes at least one step", ""),
        )
    ],
)
new_result = partial(paper_result, "fed-norm-sgda", "Sharma et al. 2023", NOTATION)
