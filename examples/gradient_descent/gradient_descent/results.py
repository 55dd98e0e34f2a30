"""The theorem, as the draft prints it and as it should read."""

from fedbounds.authoring import GRADIENT, Condition, Form, Measure, Result, Source, Term

from gradient_descent.notation import BELOW, NOTATION, SMOOTH

L, F, T, eta = NOTATION.L, NOTATION.F, NOTATION.T, NOTATION.eta

LEAST = Measure("minimum", "rounds", "squared gradient norm of f", r"\min_{t<T}\|\nabla f(x_t)\|^2", GRADIENT**2)
CAP = Condition(eta, "<", 2 / L, "each step must descend", limits=eta)

THEOREM = Result(
    key="gradient-descent/theorem-1",
    kind="theorem",
    title="Gradient descent finds a stationary point",
    source=Source("draft", "Theorem 1", ("1",)),
    measure=LEAST,
    notation=NOTATION,
    forms=(
        Form(
            "printed",
            (Term("initial gap", 2 * F / (eta * T)),),
            (CAP,),
            (SMOOTH, BELOW),
            refuted_by="large-steps",
            note="true for eta <= 1/L, but the draft says eta < 2/L",
        ),
        Form(
            "explicit",
            (Term("initial gap", 2 * F / (eta * (2 - L * eta) * T)),),
            (CAP,),
            (SMOOTH, BELOW),
        ),
    ),
    default="explicit",
    statement="Gradient descent with a constant step comes close to a stationary point.",
)
