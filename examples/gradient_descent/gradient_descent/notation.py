"""The symbols."""

from fedbounds.authoring import (
    BOUNDED_BELOW,
    COUNT,
    OBJECTIVE,
    POSITIVE,
    SMOOTHNESS,
    STEP,
    Assumption,
    Notation,
    Quantity,
)

NOTATION = Notation(
    [
        Quantity("L", "L", "smoothness of f", "smoothness", POSITIVE, SMOOTHNESS),
        Quantity("F", "F", "initial gap f(x_0) - f*", "initial_gap", dimension=OBJECTIVE),
        Quantity("T", "T", "number of steps", "rounds", COUNT),
        Quantity("eta", r"\eta", "step size", "local_step_size", POSITIVE, STEP),
    ]
)
SMOOTH = Assumption("smooth", "|grad f(x) - grad f(y)| <= L |x - y| for all x, y", "Assumption 1")
BELOW = BOUNDED_BELOW.with_label("Assumption 2")
