r"""Rates and ratios: Theorem 1 at its own steps, exactly on quadratic games."""

from functools import cache

from fedbounds.empirical.comparison.compare_run import RunComparison, confront_family
from fedbounds.empirical.comparison.convergence_slopes import Rate
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import QuadraticMinimax, random_quadratic_minimax
from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.charts.picture import Picture
from fedbounds.figures.charts.rate import rate, rate_claims, ratio_claims, ratio_panels, ratios

THEOREM = "fed-norm-sgda/theorem-1-at-its-steps"
CLIENTS, LOCAL_STEPS, NOISE = 64, 8, 0.3
ROUNDS, SINCE = tuple(100 * 4**k for k in range(6)), 25600
DESCENT, COUPLING, CONCAVITY = [[0.8, 0.0], [0.0, -0.1]], [[0.3, 0.0], [0.0, 0.8]], 0.9  # not convex in x


def problem(heterogeneity: float = 1.0, noise: float = NOISE, clients: int = CLIENTS) -> QuadraticMinimax:
    """A game in which x converges at feasible T; kappa is 1.3."""
    drawn = random_quadratic_minimax(clients, 2, 2, heterogeneity=heterogeneity, seed=1)
    slopes, ascent = (part.numpy() for part in drawn.split(drawn.slopes))
    return QuadraticMinimax(DESCENT, COUPLING, CONCAVITY, slopes, ascent, noise=noise, x0=[1.0, 1.0], y0=[0.0, 0.0])


@cache
def exact_rates(rounds: tuple[int, ...] = ROUNDS, since: int = SINCE) -> dict[str, Rate]:
    """The families by panel, by exact moments over noise and participation."""
    families = {
        f"all {CLIENTS} clients": (CLIENTS, 1.0, NOISE),
        f"{CLIENTS // 4} of {CLIENTS} clients": (CLIENTS // 4, 1.0, NOISE),
        f"all {CLIENTS} clients, no noise": (CLIENTS, 1.0, 0.0),
    }
    return {
        name: Rate(
            confront_family(
                THEOREM, problem(apart, noise), WithoutReplacement(CLIENTS, P), rounds, local_steps=LOCAL_STEPS,
                form="sharp",
            ),
            since,
        )
        for name, (P, apart, noise) in families.items()
    }  # fmt: skip


def exact_rate() -> Picture:
    """Theorem 1 at its own steps on quadratic games."""
    return rate(
        exact_rates(),
        title="Rates of Theorem 1 at its steps, exactly",
        caption=f"A quadratic game that is not convex in x, kappa about 1.3, n = {CLIENTS}, tau = {LOCAL_STEPS}. The "
        "step in x is a 156th of that in y, so that x arrives late.",
    )


AXES = {
    "clients n = P": ("clients", (8.0, 16.0, 32.0, 64.0)),
    "participants P of 32": ("participants", (4.0, 8.0, 16.0, 32.0)),
    "local steps tau": ("local_steps", (2.0, 4.0, 8.0, 16.0)),
    "heterogeneity sigma_G, P = 8": ("heterogeneity", (0.25, 0.5, 1.0, 2.0, 4.0)),
}
RATIO_ROUNDS = 10_000
FORMS = ("repaired", "sharp")


def run_at_its_steps(name: str, value: float, form: str, rounds: int) -> RunComparison:
    """One run at the theorem's steps with one number changed; of n, with all clients taking part."""
    own = {"clients": 32.0, "participants": 8.0 if name == "heterogeneity" else 32.0, "local_steps": 4.0,
           "heterogeneity": 1.0, name: value}  # fmt: skip
    clients = int(own["clients"])
    drawn = WithoutReplacement(clients, clients if name == "clients" else int(own["participants"]))
    game = problem(own["heterogeneity"], clients=clients)
    return confront_family(THEOREM, game, drawn, [rounds], local_steps=int(own["local_steps"]), form=form)


@cache
def exact_ratios(rounds: int = RATIO_ROUNDS) -> dict[str, dict[float, list[RunComparison]]]:
    """Panel to value to the run under both certified forms."""
    return ratio_panels(AXES, lambda name, value, form: run_at_its_steps(name, value, form, rounds), FORMS)


def exact_ratio(rounds: int = RATIO_ROUNDS) -> Picture:
    """The tightness of Theorem 1 at its steps over each constant."""
    return ratios(
        exact_ratios(rounds),
        title="How tight Theorem 1 is at its steps, exactly",
        caption=f"T = {rounds:,}; a quadratic game, noise {NOISE:g} per coordinate; unless it varies, n = P = 32, "
        "tau = 4, sigma_G = 1.",
    )


def claims() -> list[FigureClaim]:
    """The claims about the dependence on T and on the setting."""
    return [*rate_claims(exact_rates()), *ratio_claims(exact_ratios())]
