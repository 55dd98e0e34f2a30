r"""Theorem III, nonconvex: $E\|\nabla f(\bar x^R)\|^2\le\varepsilon$ for $\eta_g=\sqrt S$, some
$\eta_l\le\frac1{24\beta K\eta_g}(S/N)^{2/3}$ and

$$R=O\Big(\frac{\beta\sigma^2F}{KS\varepsilon^2}+\Big(\frac NS\Big)^{2/3}\frac{\beta F}\varepsilon\Big).$$

Solved for $\varepsilon$ up to constants; $\bar x^R$ is one of the models before the rounds, drawn uniformly, so the
left-hand side is their average. What the O hides the paper does not say, so this form is an order and no guarantee.
With K = 1, full participation and no noise it is gradient descent, for which there is a form with constants.
"""

from sympy import Integer, Rational, sqrt

from fedbounds.authoring import AVERAGE_GRADIENT, Condition, Form, Result, Source, Term
from scaffold.notation import ALL_CLIENTS, BELOW, BETA_SMOOTH, NOISE, NOTATION, SAMPLING

n = NOTATION
beta, sigma, F, N, S, K, R, eta_l, eta_g = n.beta, n.sigma, n.F, n.N, n.S, n.K, n.R, n.eta_l, n.eta_g

RARITY = (N / S) ** Rational(2, 3)
SAMPLED = Condition(S, "<=", N, "S of N clients are drawn", S, legal=True)
CAP = Condition(eta_l, "<=", 1 / (24 * beta * K * sqrt(S) * RARITY), "drift, at eta_g = sqrt(S)", limits=eta_l)
eta = eta_l * eta_g  # the step of gradient descent
DESCENDS = Condition(eta, "<", 2 / beta, "each step must descend", limits=eta_l)

THEOREM = Result(
    key="scaffold/theorem-3",
    kind="theorem",
    title="SCAFFOLD finds a stationary point whatever the heterogeneity",
    source=Source("Karimireddy et al. 2020", "Theorem III, nonconvex"),
    measure=AVERAGE_GRADIENT,
    notation=NOTATION,
    forms=(
        Form(
            "printed",
            (
                Term("gradient noise", sigma * sqrt(beta * F / (R * K * S))),
                Term("initial gap and control lag", beta * F / R * RARITY),
            ),
            (SAMPLED, CAP),
            (BETA_SMOOTH, NOISE, SAMPLING, BELOW),
            order_only=True,
            hides="one absolute constant for each term",
            prescribes={"eta_g": sqrt(S)},
            note="printed as rounds to reach epsilon; holds for some eta_l under the cap, not for each",
        ),
        Form(
            "explicit:K=1",
            (Term("initial gap", 2 * F / (eta * (2 - beta * eta) * R)),),
            (
                Condition(K, "==", Integer(1), "one local step", K),
                Condition(S, "==", N, "all clients participate", S),
                Condition(sigma, "==", Integer(0), "no gradient noise", sigma),
                DESCENDS,
            ),
            (BETA_SMOOTH, ALL_CLIENTS, BELOW),
            note="ours: the control variates cancel in the mean, which leaves gradient descent with eta_l eta_g",
        ),
    ),
    default="printed",
    statement="The average squared gradient norm falls like 1/sqrt(RKS) in the noise and 1/R besides.",
)
