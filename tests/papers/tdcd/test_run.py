"""Runs of TDCD held against Theorem 1 and Remark 5: constants, findings, golden runs, and what must be refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import NoConstant
from fedbounds.empirical.comparison.compare_run import RunComparison, confront, confront_family
from fedbounds.empirical.comparison.run_setting import setting_of_moments, setting_of_trace
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, LabelPrivateTDCD, PrintedTDCD
from fedbounds.empirical.papers.tdcd.run import RUNS
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import BlockQuadratic, random_block_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from tests.papers.tdcd.golden import BLOCK, GOLDEN, HESSIAN, ROW, START, Golden, L, golden

THEOREM = "tdcd/theorem-1"


def different(noise: float = 0.0, heterogeneity: float = 1.0) -> BlockQuadratic:
    """Clients with Hessians of their own."""
    return random_block_quadratic(2, 3, 2, heterogeneity, shared=False, noise=noise, seed=3)


def exact(problem: BlockQuadratic, Q: int, R: int, form: str = "repaired", **more: Any) -> RunComparison:
    cap = float(problem.constants()["smoothness"].value)  # type: ignore[union-attr]
    run = moments(TDCD(1 / (8 * Q * cap), Q), problem, Full(problem.clients), R)
    return confront(run, THEOREM, form, **more)


@pytest.mark.parametrize("one", GOLDEN, ids=[f"Q={one.Q}-{one.noise}" for one in GOLDEN])
def test_golden_runs(one: Golden) -> None:
    problem = golden(one.noise)
    forms = {"repaired": one.B0, "repaired:B0inf": one.B0inf, "sharp:B1": one.B1, "sharp:B3": one.B3}
    for form, bound in forms.items():
        given = {} if form == "sharp:B3" else {"Lmax": ROW}
        found = exact(problem, one.Q, one.R, form, given=given)
        assert found.measured[-1] == pytest.approx(one.norm, rel=1e-12) and found.guarantee, found.why_not
        assert found.bound[-1] == pytest.approx(bound, rel=1e-12)
        assert found.measure.over == "sync points" and found.rounds[-1] == one.R


def test_constants_of_one_quadratic() -> None:
    found = exact(golden(), 5, 20, "sharp:Bind").constants
    assert {name: c.source for name, c in found.items()} == {
        "L": "exact", "Lmax": "exact", "Delta": "exact", "S": "exact", "SK": "exact", "Q": "given", "R": "given",
        "eta": "given",
    }  # fmt: skip
    assert float(found["L"].value) == pytest.approx(L) and float(found["Lmax"].value) == pytest.approx(BLOCK)
    assert float(found["S"].value) == pytest.approx(1.0) and float(found["SK"].value) == pytest.approx(
        0.3 / 2 + 0.7 / 3
    )
    assert float(found["Delta"].value) == pytest.approx(8.625 - 0.590959343117195)
    remark = confront_family(
        "tdcd/remark-5", golden(), Full(5), [400], local_steps=5, form="explicit", given={"c": 0.5}
    )
    assert float(remark.constants["Deltainf"].value) == pytest.approx(8.625)


def test_what_clients_differ_by_is_noise_in_the_mean_over_the_rounds() -> None:
    """By the definition, with models and noise that are followed by hand."""
    problem, R = different(), 6
    run = simulate(TDCD(0.05, 3), problem, Full(problem.clients), R, record_models=True)
    found = confront(run, THEOREM, "repaired", problem=problem, participation=Full(problem.clients))
    sum_products = []
    for x in run.model[0][:R]:
        here, each = torch.from_numpy(x), torch.arange(problem.clients)
        whole = problem.objective_gradient(here)
        own = problem.gradient(here.expand(1, problem.clients, -1), each[None])[0]
        silos = [own[:3, :2] - whole[:2], own[3:, 2:] - whole[2:]]
        sum_products.append(sum(float(apart.square().sum()) / 3 for apart in silos))
    S = found.constants["S"]
    assert float(S.value) == pytest.approx(np.mean(sum_products)) and S.source == "trajectory"
    assert not found.guarantee and "S is known only along one run" in found.why_not
    along = exact(problem, 3, R)
    assert along.constants["S"].source == "trajectory" and float(along.constants["S"].value) > 0


def test_a_fall_of_f_that_was_sampled_guarantees_nothing_and_the_note_says_what_does() -> None:
    problem = golden()
    run = simulate(TDCD(1 / (40 * L), 5), problem, Full(5), 20, seeds=range(30))
    found = confront(run, THEOREM, "repaired", problem=problem, participation=Full(5))
    assert found.why_not == ("Delta is only estimated",) and any("repaired:B0inf" in note for note in found.notes)
    a_priori = confront(run, THEOREM, "repaired:B0inf", problem=problem, participation=Full(5))
    assert a_priori.guarantee and not a_priori.crossings.size
    quiet = golden("none")
    run = simulate(TDCD(1 / (40 * L), 5), quiet, Full(5), 20)
    silent = confront(run, THEOREM, "repaired", problem=quiet, participation=Full(5))
    assert silent.guarantee and silent.constants["Delta"].source == "exact"
    assert silent.bound[-1] == pytest.approx(exact(quiet, 5, 20).bound[-1], rel=1e-12)


def test_f_that_rises_has_fallen_by_nothing() -> None:
    problem = BlockQuadratic(HESSIAN, (2, 2), (2, 3), noise=3.0, x0=[0.01, 0, 0, 0])
    assert float(exact(problem, 5, 20).constants["Delta"].value) == 0


@pytest.mark.parametrize(
    ("problem", "assumption", "form", "status"),
    [
        (golden(), "unbiased-clients", "printed", "checked"),
        (different(), "unbiased-clients", "printed", "violated"),
        (random_block_quadratic(2, 3, 2, 1.0, seed=3), "unbiased-clients", "printed", "violated"),
        (golden(), "unbiased-silos", "repaired", "checked"),
        (different(), "unbiased-silos", "repaired", "checked"),
        (golden(), "block-smooth", "repaired", "checked"),
        (golden(), "uncorrelated-clients", "sharp:Bind", "checked"),
        (different(0.3), "uncorrelated-clients", "sharp:Bind", "checked"),
        (golden("shared"), "uncorrelated-clients", "sharp:Bind", "violated"),
        (golden("none"), "uncorrelated-clients", "sharp:Bind", "checked"),
        (golden(), "bounded-below", "repaired:B0inf", "checked"),
    ],
)
def test_assumptions_are_found_either_way(problem: BlockQuadratic, assumption: str, form: str, status: str) -> None:
    given = {"SK": 1.0} if status == "violated" and form == "sharp:Bind" else {}
    assert exact(problem, 3, 8, form, given=given).evaluation.assumptions[assumption] == status


def test_unequal_shards_are_biased() -> None:
    """Das et al. weigh clients alike, and their objective is the mean over samples."""
    pieces = BlockQuadratic(np.eye(1), (1,), (2,), [[0.0], [4.0], [4.0], [4.0]], holders=[[0, 1, 1, 1]])
    run = moments(TDCD(0.1, 1), pieces, Full(2), 400)
    assert run.mean[-1] == pytest.approx(2.0) and float(pieces.minimizer()) == pytest.approx(3.0)
    found = confront(run, THEOREM, "repaired")
    assert found.evaluation.assumptions["unbiased-silos"] == "violated" and not found.guarantee


@pytest.mark.parametrize("problem", [golden(), different(0.3)], ids=["golden", "different"])
def test_the_virtual_average_between_sync_points(problem: BlockQuadratic) -> None:
    everybody = Full(problem.clients)
    run = simulate(TDCD(1 / (40 * L), 5), problem, everybody, 12, seeds=range(2), record_models=True)
    of_run = RUNS.measure(
        setting_of_trace(run, problem, everybody), "squared gradient norm of f at the virtual average"
    )[1]
    assert of_run is not None
    fewer = [simulate(TDCD(1 / (40 * L), q), problem, everybody, 1, seeds=range(2)) for q in range(1, 5)]
    first = np.mean([run.gradient_norm_squared[:, 0], *(one.gradient_norm_squared[:, 1] for one in fewer)], axis=0)
    np.testing.assert_allclose(of_run[:, 0], first, rtol=1e-12)
    exactly = moments(TDCD(1 / (40 * L), 5), problem, everybody, 12)
    average, _ = RUNS.measure(setting_of_moments(exactly), "squared gradient norm of f at the virtual average")
    shorter = [moments(TDCD(1 / (40 * L), q), problem, everybody, 1).gradient_norm_squared[1] for q in range(1, 5)]
    assert average[0] == pytest.approx(np.mean([exactly.gradient_norm_squared[0], *shorter]), rel=1e-12)
    with pytest.raises(FedboundsError, match="record_models=True"):
        blind = simulate(TDCD(0.01, 5), problem, everybody, 4)
        confront(blind, THEOREM, "repaired:all-iterations", problem=problem, participation=everybody)


def test_the_first_iterates_exceed_the_printed_bound_as_its_erratum_says() -> None:
    scalar = BlockQuadratic([[1.0]], (1,), (1,), x0=[1.0])
    found = exact(scalar, 8, 50, "printed")
    assert found.ratio[-1] == pytest.approx(1.598, abs=1e-3) and "average-over-the-first-iterates" in found.revoked
    assert not exact(scalar, 8, 50, "repaired").crossings.size
    between = exact(scalar, 8, 50, "repaired:all-iterations")
    assert between.guarantee and between.ratio.max() < exact(scalar, 8, 50, "repaired").ratio.max()


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"Lmax": 1.0}, "Lmax"), ({"S": 0.0}, "S"), ({"L": 1.0}, "L"), ({"Delta": 1.0}, "Delta"), ({"Q": 3}, "Q")],
)
def test_constants_that_the_run_contradicts_are_refused(given: dict[str, float], reason: str) -> None:
    with pytest.raises(FedboundsError, match=f"{reason} "):
        exact(golden(), 5, 20, given=given)


def test_noise_without_what_clients_differ_by_is_no_guarantee() -> None:
    """Two clients, x^2/2 about 1 and 3 x^2/2 about -1, from the fixed point of the algorithm: nothing is sampled."""
    problem = BlockQuadratic([[[1.0]], [[3.0]]], (1,), (2,), [[1.0], [-1.0]], x0=[-0.485169])
    run = moments(TDCD(1 / 24 / 20, 20), problem, Full(2), 400)
    assert run.gradient_norm_squared[-1] == pytest.approx(8.80e-4, rel=1e-3)
    found = confront(run, THEOREM, "repaired")
    assert found.ratio[-1] < 1 and not found.guarantee
    with pytest.raises(FedboundsError, match="S "):
        confront(run, THEOREM, "repaired", given={"S": 0.0})
    blind = simulate(TDCD(1 / 24 / 20, 20), problem, Full(2), 400)
    claimed = confront(blind, THEOREM, "repaired", problem=problem, participation=Full(2), given={"S": 0.0})
    assert claimed.crossings.size and not claimed.guarantee
    assert any("S is given, and there is none" in why for why in claimed.why_not)


def test_measured_smoothness_is_at_most_the_exact_one() -> None:
    problem = golden()

    class Unknown(BlockQuadratic):
        def constants(self) -> dict[str, Any]:
            known = super().constants()
            return known | dict.fromkeys(("smoothness", "block_smoothness"), NoConstant("it is not stated"))

    unknown = Unknown(HESSIAN, (2, 2), (2, 3), None, problem.noise, False, START)
    run = simulate(TDCD(1 / (40 * L), 5), unknown, Full(5), 20, seeds=range(2), record_models=True)
    found = confront(run, THEOREM, "repaired", problem=unknown, participation=Full(5)).constants
    for name, value in (("L", L), ("Lmax", BLOCK)):
        assert found[name].source == "estimated"
        assert 0.7 * value < float(found[name].value) <= value * (1 + 1e-9)


def test_remark_5_sets_the_step_size() -> None:
    family = confront_family(
        "tdcd/remark-5", golden(), Full(5), [1000, 4000, 16000], local_steps=5, form="explicit", given={"c": 0.5}
    )
    assert family.guarantee and not family.crossings.size and family.valid.tolist() == [True] * 3
    eta = float(family.constants["eta"].value) if "eta" in family.constants else 0.5 / (5 * 16000**0.5)
    assert eta == pytest.approx(0.5 / (5 * 16000**0.5))
    with pytest.raises(FedboundsError, match=r"c = 0\.5 is given, and it is 1\.58"):
        confront(moments(TDCD(0.01, 5), golden(), Full(5), 1000), "tdcd/remark-5", "explicit", given={"c": 0.5})
    with pytest.raises(FedboundsError, match="sets no step"):
        confront_family(THEOREM, golden(), Full(5), [10], local_steps=5)


@pytest.mark.parametrize(
    ("algorithm", "why"),
    [(PrintedTDCD(0.01, 3), "the last of its 3 local steps is lost"),
     (LabelPrivateTDCD(0.01, 3, "once a round"), "which are no gradients")],
)  # fmt: skip
def test_algorithms_that_the_theorem_is_not_about_are_refused(algorithm: Any, why: str) -> None:
    from fedbounds.empirical.comparison.run_setting import RunSetting

    with pytest.raises(FedboundsError, match=why):
        RUNS.steps(RunSetting.ahead(algorithm, golden(), Full(5), None, 4), None)


def test_labels_that_return_in_every_step_are_the_same_algorithm() -> None:
    found = confront(moments(LabelPrivateTDCD(0.005, 5), golden(), Full(5), 20), THEOREM)
    assert found.guarantee and found.form.name == "sharp:B3"


def test_time_is_not_rounds() -> None:
    run = moments(TDCD(0.005, 5), golden(), Full(5), 20)
    with pytest.raises(FedboundsError, match="counts time"):
        confront(run, "tdcd/wall-clock", given={"W": 700, "tcomm": 10, "tcomp": 1})


def test_equal_shards_count_alike() -> None:
    assert confront(moments(TDCD(0.005, 5, "shards"), golden(), Full(5), 20), THEOREM, "repaired").guarantee


def test_a_given_gap_stands_in_for_what_f_was_seen_to_fall_by_or_is_said_not_to_be_used() -> None:
    problem, algorithm = golden(0.5), TDCD(0.02, 2)
    run = simulate(algorithm, problem, Full(problem.clients), 6, seeds=range(4))
    apart: dict[str, Any] = {"problem": problem, "participation": Full(problem.clients)}
    alone = confront(run, THEOREM, "sharp:B3", **apart)
    assert not alone.guarantee and alone.constants["Delta"].source == "estimated"
    found = confront(run, THEOREM, "sharp:B3", given={"Deltainf": 10.0}, **apart)
    assert found.guarantee, found.why_not
    assert (found.constants["Delta"].source, float(found.constants["Delta"].value)) == ("derived", 10.0)
    assert (found.bound > alone.bound).all()
    assert any(note.startswith("Delta follows from Deltainf") for note in found.notes)
    assert not any("repaired:B0inf" in note for note in found.notes)
    with pytest.raises(FedboundsError, match=r"Deltainf = 0.1 is given, and it is 8\.625"):
        confront(run, THEOREM, "sharp:B3", given={"Deltainf": 0.1}, **apart)
    surest = exact(golden(), 2, 6, "sharp:B3", given={"Deltainf": 10.0})
    assert surest.guarantee and "the given Deltainf has no effect: Delta (exact) is used" in surest.notes
