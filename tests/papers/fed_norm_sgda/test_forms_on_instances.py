"""Instances of the third paper's results: exact sides against slow twins, and what its forms make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import combinations, product

import numpy as np
import pytest
import torch

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.papers.fed_norm_sgda.concave import THEOREM_2, THEOREM_4, S, T, concave_terms, nu
from fedbounds.bounds.papers.fed_norm_sgda.corollaries import COROLLARY_2_2
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Form
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import LocalOptimizer
from fedbounds.empirical.falsification.instances.climbing import LIGHT, search_population
from fedbounds.empirical.falsification.instances.sides import examine
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.papers.fed_norm_sgda.instances.forms import RESULTS, VECTORS, form_sides, instance_test
from fedbounds.empirical.papers.fed_norm_sgda.instances.points import (
    BoundedRuns,
    draw_bounded,
    draw_crossed,
    draw_envelopes,
)
from fedbounds.empirical.papers.fed_norm_sgda.instances.runs import (
    QuadraticRuns,
    draw_at_rest,
    draw_quadratics,
    sum_powers,
)
from fedbounds.empirical.papers.fed_norm_sgda.instances.single_points import draw_facts
from fedbounds.empirical.papers.fed_norm_sgda.pseudocode import Gradients, any_optimizer, fed_norm_sgda, local_map
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import BoundedMinimax, OnePointMinimax, QuadraticMinimax
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments.minimax import MinimaxMoments, minimax_moments

FALSE = [  # as printed, and Lemma B.3 with the right smoothness too
    *((f"lemma-{number}", "printed") for number in ("b.1", "b.2", "b.3", "c.1", "c.2", "c.3", "c.5")),
    ("corollary-2.1", "printed"),
    ("lemma-b.3", "explicit"),
]
FALSE_ELSEWHERE = [("lemma-c.4", "printed")]  # by a counterexample that is not among these instances
FORMS = [(key, form) for key in RESULTS for form in load(f"fed-norm-sgda/{key}").forms if not form.order_only]
HOLD = [(key, form.name) for key, form in FORMS if (key, form.name) not in (*FALSE, *FALSE_ELSEWHERE)]


def claim_of(key: str, form: str) -> Claim:
    result = load(f"fed-norm-sgda/{key}")
    return ResultForm(result, result.form(form)).claim()


# --- exact second moments ------------------------------------------------------------------------------------------


def moments_of(z: QuadraticRuns, b: int, rounds: int) -> MinimaxMoments:
    """The same instance run by the library, which works client by client with means and covariances."""
    dx, scale = z.descent, z.scales[b, 0]
    missing = np.zeros((z.dimension, z.dimension - z.noise.shape[2]))
    problem = QuadraticMinimax(
        scale * z.bend[b], scale * z.coupling[b], scale * z.concavity[b], z.slopes[b, :, :dx], z.slopes[b, :, dx:],
        weights=z.weights[b], noise=np.hstack([z.noise[b], missing]), x0=z.start[b, :dx], y0=z.start[b, dx:],
    )  # fmt: skip
    optimizers = tuple(LocalOptimizer(z.momentum[b, i], tuple(z.rates[b, i])) for i in range(z.clients))
    server = z.Gammax[b] / z.taueff[b], z.Gammay[b] / z.taueff[b]
    algorithm = FedNormSGDA(
        z.etax[b], z.etay[b], *server, local_steps=z.tau, effective_local_steps=z.taueff[b], optimizer=optimizers
    )
    return minimax_moments(algorithm, problem, WithoutReplacement(z.clients, z.participants), rounds)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, (1, 3, 2), 2), (2, 1, (4, 2), 2), (1, 2, (2,), 1), (2, 2, (1, 1, 1), 2)])
def test_runs_on_quadratics_have_the_moments_of_the_library(
    shape: tuple[int, int, tuple[int, ...], int], wide: bool
) -> None:
    z = draw_quadratics(np.random.default_rng(1), 60, shape, wide=wide)
    alike = (np.ptp(z.scales, axis=1) == 0) & (z.start != 0).all(axis=1) & (z.noise != 0).any(axis=(1, 2))
    z = replace(z.take(alike), rounds=np.full(int(alike.sum()), 7.0))
    for b in range(min(len(z), 12)):
        run = moments_of(z, b, 7)
        known = {
            "gradsq": run.envelope_gradient_norm_squared(), "gap": run.dual_gap(), "drift": run.drift,
            "update": run.direction[:, 0], "update_y": run.direction[:, 1], "direction": run.exact_direction[:, 0],
        }  # fmt: skip
        rounding = 1e-16 * float((z.noise[b] ** 2).sum() + (z.slopes[b] ** 2).sum())  # of numbers that almost vanish
        for name, values in known.items():
            assert z.expected(name, 2)[b, 0] == pytest.approx(values[:7].mean(), rel=1e-11, abs=rounding), name


def test_noise_that_grows_is_that_over_all_its_signs() -> None:
    """Scaled clients, one of two takes part, two local steps: all values of both kinds of noise."""
    z = draw_quadratics(np.random.default_rng(2), 6, (1, 1, (2, 1), 1), wide=True, growing=True)
    for b in range(len(z)):
        a, norm, steps = z.coefficients[b], z.norms["a1"][b], np.array([-z.etax[b], z.etay[b]])
        sums = dict.fromkeys(("update", "update_y", "drift", "envelope", "noisysq"), 0.0)
        for i in range(2):
            ways = list(product(product((-1, 1), repeat=3), repeat=z.tau[i]))
            for way in ways:
                u, buffer, drift, noisy = np.zeros(2), np.zeros(2), 0.0, 0.0
                for k, (grown, *xi) in enumerate(way):
                    here = z.start[b] + steps * u
                    gradient = z.scales[b, i] * z.hessian[b] @ here + z.slopes[b, i]
                    drift += a[i, k] / norm[i] * float(((steps * u) ** 2).sum())
                    noisy += (a[i, k] / norm[i]) ** 2 * gradient[0] ** 2
                    gradient = gradient * (1 + z.growth[b] * grown) + z.noise[b] @ np.array(xi)
                    buffer = z.momentum[b, i] * buffer + z.rates[b, i, k] * gradient
                    u = u + buffer
                g, w = 2 * z.weights[b, i] * u / norm[i], z.weights[b, i]
                after = z.start[b, 0] - z.Gammax[b] * g[0]
                sums["update"] += g[0] ** 2 / (2 * len(ways))
                sums["update_y"] += g[1] ** 2 / (2 * len(ways))
                sums["envelope"] += z.envelope[b, 0, 0] * after**2 / 2 / (2 * len(ways))
                sums["drift"] += z.smoothness[b] ** 2 * w * drift / len(ways)
                sums["noisysq"] += w**2 * noisy / len(ways)
        for name, value in sums.items():
            assert z.expected(name, int(name == "envelope"))[b, 0] == pytest.approx(value, rel=1e-9), name


def test_rounds_are_summed_by_doubling() -> None:
    rng = np.random.default_rng(3)
    matrix, vector, counts = rng.normal(size=(5, 3, 3)) / 2, rng.normal(size=(5, 3)), np.array([1.0, 2, 3, 8, 29])
    for b, total in enumerate(sum_powers(matrix, vector, counts)):
        powers = [np.linalg.matrix_power(matrix[b], t) @ vector[b] for t in range(int(counts[b]))]
        assert total == pytest.approx(np.sum(powers, axis=0))


# --- Fed-Norm-SGDA+ ------------------------------------------------------------------------------------------------


def problem_of(z: BoundedRuns, b: int) -> BoundedMinimax:
    functions = {"ripple": z.ripple[b], "depth": z.depth[b], "bend": z.bend[b], "weights": z.weights[b]}
    start = {"x0": z.start[b, 0], "y0": z.start[b, 1]}
    if z.one_point:
        return OnePointMinimax(z.slopes[b], **functions, **start)
    return BoundedMinimax(z.slopes[b], z.lifts[b], **functions, **start)


def assert_visited(z: BoundedRuns, b: int, runs: list[list[torch.Tensor]]) -> None:
    """Gradients, gaps and radii of these runs, equally likely, are those that were measured."""
    problem, period = problem_of(z, b), int(z.period[b])
    scale = z.smoothness[b] / problem.smoothness()  # where x and y do not meet the library has a cruder bound
    gap = np.mean([[float(problem.dual_gap(m[None])[0]) for m in run[:-1]] for run in runs], axis=0)
    assert z.visited.gap[b] == pytest.approx(gap, rel=1e-9, abs=1e-12)
    stale = []
    for run in runs:
        pairs = [(problem.split(run[t - t % period])[0], problem.split(run[t])[1]) for t in range(z.rounds)]
        stale.append([float(problem.dual_gap(problem.join(x, y)[None])[0]) for x, y in pairs])
    assert z.visited.stale[b] == pytest.approx(np.mean(stale, axis=0), rel=1e-9, abs=1e-12)
    if scale == 1:
        moved = [torch.stack([problem.moreau_gradient(problem.split(m)[0]) for m in run[:-1]]) for run in runs]
        gradsq = np.mean([grad.square().sum(-1).numpy() for grad in moved], axis=0)
        assert z.visited.gradsq[b] == pytest.approx(gradsq, rel=1e-7, abs=1e-12)
    largest = max(float(problem.split(m)[1].square().sum()) for run in runs for m in run[:-1])
    assert z.visited.ascent[b] == pytest.approx(largest)


@pytest.mark.parametrize("one_point", [False, True])
def test_runs_over_all_samples_are_those_of_the_slow_twin(one_point: bool) -> None:
    z = draw_bounded(np.random.default_rng(4), 4, (2, (2, 1, 3), 2, 3), one_point=one_point)
    samples = [np.isin(np.arange(3), chosen) / 2 for chosen in combinations(range(3), 2)]
    for b in range(len(z)):
        problem = problem_of(z, b)
        kept = {
            "tau": [z.tau] * 3, "w": [z.weights[b].tolist()] * 3, "tau_eff": [z.taueff[b]] * 3, "S": int(z.period[b]),
            "a": [any_optimizer(z.momentum[b, i], z.rates[b, i].tolist(), 1.0) for i in range(3)],
            "eta_x": z.etax[b], "eta_y": z.etay[b],
            "gamma_x": z.Gammax[b] / z.taueff[b], "gamma_y": z.Gammay[b] / z.taueff[b],
        }  # fmt: skip
        runs = [fed_norm_sgda(problem, np.array(q), problem.z0, Streams(0), **kept) for q in product(samples, repeat=3)]
        assert_visited(z, b, runs)


def scripted(
    problem: BoundedMinimax, signs: tuple[float, ...], growth: float, size: np.ndarray
) -> Callable[[], Gradients]:
    """Client 0's gradients with noise of these signs, one after the other."""
    following = iter(signs)

    def draw() -> Gradients:
        sign = next(following)

        def gradients(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            here = problem.join(x, y)[None, None]
            in_x, in_y = problem.split(problem.gradient(here, torch.tensor([[0]]))[0, 0])
            return in_x * (1 + growth * sign) + size[0] * sign, in_y * (1 + growth * sign) + size[1] * sign

        return gradients

    return draw


def test_runs_over_all_signs_of_the_noise_are_those_of_the_local_map() -> None:
    z = draw_bounded(np.random.default_rng(5), 8, (2, (2,), 1, 2), noisy=True)
    for b in range(len(z)):
        problem, runs = problem_of(z, b), []
        for signs in product((-1.0, 1.0), repeat=4):
            models = [problem.z0]
            draw = scripted(problem, signs, z.growth[b], z.noise[b] / np.sqrt(2))
            for t in range(2):
                x, y = problem.split(models[t])
                snapshot = problem.split(models[t - t % int(z.period[b])])[0]
                a = any_optimizer(z.momentum[b, 0], z.rates[b, 0].tolist(), 1.0)
                g_x, g_y = local_map(problem, draw, x, y, snapshot, 2, a, z.etax[b], z.etay[b])
                models.append(problem.join(x - z.Gammax[b] * g_x, y + z.Gammay[b] * g_y))
            runs.append(models)
        assert_visited(z, b, runs)


def test_constants_of_bounded_problems_are_those_of_the_library() -> None:
    z = draw_bounded(np.random.default_rng(6), 12, (2, (1, 1, 1), 3, 1))
    symbols = z.symbols(False)
    for b in range(len(z)):
        constants = problem_of(z, b).constants()
        known = {name: c.value for name, c in constants.items() if isinstance(c, Constant)}
        assert symbols["Gx"][b, 0] == pytest.approx(known["descent_gradient_bound"])
        assert symbols["sigmaG"][b, 0] == pytest.approx(known["weighted_heterogeneity"], abs=1e-12)
        assert symbols["Lf"][b, 0] <= known["smoothness"] * (1 + 1e-12)


# --- single points -------------------------------------------------------------------------------------------------


def test_slopes_of_facts_are_derivatives_and_proximal_points_are_stationary() -> None:
    z, h = draw_facts(np.random.default_rng(7), 40, 2, 3), 1e-6
    x, unit = z.vectors[:, 0], np.eye(3)[0]
    numeric = (z.value(x + h * unit) - z.value(x - h * unit)) / (2 * h)
    assert numeric[:, 0] == pytest.approx(z.slope(x)[:, 0], rel=1e-4, abs=1e-6)
    two = draw_envelopes(np.random.default_rng(8), 40, 2, 2)
    u = two.proximal(1)
    force = two.curvatures[:, 1, None] * u + two.slopes[:, 1, None] + 2 * two.smoothness[:, None, None] * (u - two.path)
    assert np.abs(force).max() < 1e-12 * 20


# --- the checker -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "form"), HOLD)
def test_nothing_that_holds_is_refuted_and_something_is_covered(key: str, form: str) -> None:
    claim = claim_of(key, form)
    how = instance_test(claim)
    assert how is not None
    finding = search_population(claim, how, LIGHT._replace(cells=6))
    assert finding.covered and not finding.refuted, finding.instance


@pytest.mark.parametrize(("key", "form"), FALSE)
def test_what_is_false_as_printed_is_refuted_and_replayed(key: str, form: str) -> None:
    claim = claim_of(key, form)
    how = instance_test(claim)
    assert how is not None
    finding = search_population(claim, how, LIGHT)
    assert finding.refuted and finding.worst > 1.05
    kind = type(next(iter(how.draw(claim, 30))))
    numbers = {f.name: finding.instance[f.name] for f in fields(kind)}
    arrays = {f.name for f in fields(kind) if "np.ndarray" in str(f.type)}
    again = how.sides(claim, kind(**{k: np.array([v]) if k in arrays else v for k, v in numbers.items()}))
    place = 0, finding.instance["place"]
    assert again.left[place] == pytest.approx(finding.instance["left"], rel=1e-9)
    assert again.total()[place] == pytest.approx(finding.instance["right"], rel=1e-9)


def test_the_printed_lemma_of_descent_fails_when_replayed() -> None:
    """Lemma B.3 with (1 + kappa) Lf from its symbols, both sides with the library's moments."""
    z = draw_at_rest(np.random.default_rng(9), 400, (4,))
    ratios = form_sides(claim_of("lemma-b.3", "explicit"), z).ratios()[:, 0]
    b = int(ratios.argmax())
    run, L, kappa, Gamma = moments_of(z, b, 1), z.smoothness[b], z.condition[b], z.Gammax[b]
    assert z.growth[b] == 0 and z.clients == 1  # so no condition limits a step
    increase = z.envelope[b, 0, 0] / 2 * (run.covariance[1, 0, 0] + run.mean[1, 0] ** 2)
    noise = (z.noise[b] ** 2).sum() * (z.coefficients[b] ** 2).sum() / z.coefficients[b].sum() ** 2
    smooth = Gamma * (1 + kappa) * L
    right = (
        -Gamma / 2 * (1 - smooth) * run.exact_direction[0, 0]
        + 5 / 4 * Gamma * run.drift[0]
        + Gamma * smooth / 2 * noise
    )
    assert increase > 1.1 * right > 0


def test_noise_in_x_that_grows_with_the_gradient_in_y_breaks_the_printed_lemma_c_1() -> None:
    """One client, one step: both sides from the symbols, the Moreau envelope on a grid."""
    z = draw_crossed(np.random.default_rng(12), 40, 1)
    ratios = form_sides(claim_of("lemma-c.1", "printed"), z).ratios()[:, 0]
    b = int(ratios.argmax())
    (x, y), rho, beta, Gamma = z.start[b, :, 0], z.ripple[b], z.growth[b], z.Gammax[b]
    assert z.smoothness[b] == z.depth[b] == 1 and not z.bend[b] and not z.slopes[b].any() and not z.lifts[b].any()
    grid = np.linspace(-15, 20, 200001)

    def moreau(point: float) -> float:
        return float((rho * np.cos(grid) + (grid - point) ** 2).min())

    grown = beta * np.tanh(y)  # the size of the noise in x: beta times the gradient in y, so Assumption 2 holds
    after = [moreau(x + Gamma * (rho * np.sin(x) + sign * grown)) for sign in (-1, 1)]
    near = x
    for _ in range(60):
        near = x + rho * np.sin(near) / 2  # the proximal point
    right = -Gamma / 8 * (2 * (x - near)) ** 2 + Gamma**2 * rho**2 * (1 + beta**2) + 2 * Gamma * np.log(np.cosh(y))
    assert np.mean(after) - moreau(x) > 1.5 * right > 0


@pytest.mark.parametrize(
    ("key", "form", "term", "factor"),
    [
        ("theorem-1", "sharp", "initial gap", 0.1),
        ("theorem-1", "sharp", "initial dual gap", 0.0),
        ("theorem-1-at-its-steps", "sharp", "initial gap", 0.1),
        ("theorem-1-at-its-steps", "repaired", "initial dual gap", 0.0),
        ("remark-1", "repaired", "full synchronization", 0.0),
        ("lemma-b.2", "repaired", "noise", 0.99),
        ("lemma-b.3", "repaired", "noise", 0.9),
        ("lemma-b.3", "repaired", "dual gap", 0.2),
        ("lemma-b.4", "repaired", "noise and heterogeneity", 0.1),
        ("lemma-b.5", "sharp", "initial dual gap", 0.5),
        ("lemma-b.5", "sharp", "noise", 0.5),
        ("lemma-b.7", "printed", "local drift", 0.4),
        ("lemma-c.2", "sharp", "noise", 0.2),
        ("lemma-c.3", "sharp", "restart", 0.05),
        ("lemma-c.4", "repaired", "stale snapshot", 0.4),
        ("corollary-1.1", "printed", "maximizer mismatch", 0.3),
        ("remark-6", "printed", "heterogeneity", 0.99),
    ],
)
def test_a_smaller_constant_is_refuted(key: str, form: str, term: str, factor: float) -> None:
    claim = claim_of(key, form)
    how = instance_test(claim)
    assert how is not None
    assert examine([how.sides(claim, z).scaled(term, factor) for z in how.draw(claim, 30)]).refuted


# --- Theorem 2 and Corollary 2.2 from Theorem 4 --------------------------------------------------------------------


def random_letters(rng: np.random.Generator, B: int) -> dict[str, np.ndarray]:
    """Clients as they are drawn, and constants over many orders of magnitude."""
    tau = tuple(map(int, rng.integers(1, int(rng.choice([2, 6])), int(rng.integers(1, 6)))))
    z = draw_bounded(rng, B, (1, tau, int(rng.integers(1, len(tau) + 1)), 1), noisy=True)

    def sizes(low: float, high: float, zeros: float = 0.0) -> np.ndarray:
        return 10 ** rng.uniform(low, high, (B, 1)) * (rng.random((B, 1)) >= zeros)

    return z.symbols(False) | {
        "Lf": sizes(-1, 1), "sigmaL": sizes(-2, 2, 0.2), "sigmaG": sizes(-2, 2, 0.2), "betaG": 1 + sizes(-2, 0, 0.5),
        "Gx": sizes(-2, 2), "R": sizes(-3, 3), "Deltabar": sizes(-4, 3), "eps": sizes(-3, 3),
        "T": np.floor(sizes(0, 9)),
    }  # fmt: skip


def test_the_repaired_theorem_2_follows_from_theorem_4_at_its_steps() -> None:
    """All conditions of Theorem 4 hold there, and its bound, with the last block, is at most that of Theorem 2."""
    rng, form = np.random.default_rng(10), THEOREM_2.form("repaired")
    conditions = THEOREM_4.form("sharp:any-T").conditions
    constants = 8, 8 * nu, 16 * nu**0.5, 72 * (1 + S / T), 18 * nu, 82 * nu, 2
    certified = compile_form(Form("repaired", concave_terms(*constants), conditions), VECTORS)  # type: ignore[arg-type]
    worst = 0.0
    for _ in range(12):
        symbols = random_letters(rng, 1000)
        symbols |= dict(zip(form.prescribes, compile_form(form, VECTORS).parts(symbols).prescribed, strict=True))
        theirs, ours = certified.parts(symbols), compile_form(form, VECTORS).parts(symbols)
        legal = np.all([np.broadcast_to(h, ours.total.shape) for h in ours.holds], axis=0)
        assert legal.any() and np.all([np.broadcast_to(h, legal.shape)[legal] for h in theirs.holds])
        worst = max(worst, float((theirs.total / ours.total)[legal].max()))
    assert 0.99 < worst < 1 + 1e-9


def test_the_repaired_corollary_2_2_follows_from_theorem_2() -> None:
    rng, form = np.random.default_rng(11), compile_form(COROLLARY_2_2.form("repaired"), VECTORS)
    for _ in range(12):
        symbols = random_letters(rng, 1000)
        rounds = form.parts(symbols).total
        for later in (1, 1.7, 10):
            symbols["T"] = np.ceil(rounds * later)
            bound = compile_form(THEOREM_2.form("repaired"), VECTORS).parts(symbols).total
            assert (bound / symbols["eps"] ** 2)[rounds < 1e200].max() < 1 + 1e-9
