"""The letters of Das et al. (2022); the bound needs of the noise only `S`, the sum over blocks of sigma_j^2."""

from __future__ import annotations

from fedbounds.bounds.symbols import COUNT, GRADIENT, OBJECTIVE, POSITIVE, SMOOTHNESS, STEP, Notation, Quantity

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
            r"\Delta",
            "initial gap: f(x_0) - E f(x_T) where it is known, else the larger f(x_0) - inf f",
            "initial_gap",
            dimension=OBJECTIVE,
        ),
        Quantity(
            "S",
            r"\left(\textstyle\sum_j\sigma_j^2\right)",
            "sum over blocks of the variance of a client's stochastic partial gradient",
            "block_gradient_noise",
            dimension=GRADIENT**2,
        ),
        Quantity("Q", "Q", "local steps per round", "local_steps", COUNT),
        Quantity("R", "R", "number of rounds", "rounds", COUNT),
        Quantity("eta", r"\eta", "learning rate", "local_step_size", POSITIVE, STEP),
    ]
)
