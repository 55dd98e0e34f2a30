"""The accountant keeps little, and says what the full record would say; it covers nothing that it should not."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.papers.fedau.weight_error import weight_error
from fedbounds.bounds.participation.window_variance import markov_correlation
from fedbounds.bounds.search.rounds import rounds
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.monitoring.account_protocol import checksum
from fedbounds.empirical.monitoring.accountant import ParticipationAccountant
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.papers.fedau.participation_weights import weight_paths
from fedbounds.empirical.participation import (
    Bernoulli,
    Cyclic,
    Full,
    GroupMarkov,
    Markovian,
    Permutation,
    WithoutReplacement,
)
from fedbounds.empirical.problems import Quadratic, toy_example
from fedbounds.empirical.simulation.moments import moments
from tests.bounds.participation.reference_constants import (
    cohort_divergence,
    mean_window_divergence,
    median_bound,
    window_divergence,
)

THEOREM = "arbitrary-participation/theorem-3.1"
FEDAU = "fedau/theorem-2"
KNOWN = dict(L=1, F=1.5, I=1, gamma=1 / 36, eta=6, sigma=0.1, d=2)
KNOWN_FEDAU = dict(L=1, F=1, I=2, gamma=0.001, eta=1, sigma=0.1, delta=1, G=1)


def fed(accountant: ParticipationAccountant, q: np.ndarray) -> ParticipationAccountant:
    for row in q:
        accountant.add({int(n): float(row[n]) for n in np.flatnonzero(row)})
    return accountant


def record(seed: int, rounds: int = 37, clients: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    q = rng.random((rounds, clients)) * (rng.random((rounds, clients)) < 0.6)
    q[:, 0] += q.sum(axis=1) == 0
    return q / q.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_divergences_are_those_of_the_full_record(seed: int) -> None:
    q, v = record(seed), np.random.default_rng(seed + 100).standard_normal((5, 3))
    exact = fed(ParticipationAccountant(5, intervals=[3, 4], offsets=v), q)
    bounded = fed(ParticipationAccountant(5, intervals=[3, 4]), q)
    for P in (1, 3, 4):
        said, over_d2 = exact.quantities()["arbitrary-participation"], bounded.quantities()["arbitrary-participation"]
        assert said[f"delta^2({P})"] == pytest.approx(window_divergence(q, v, P) ** 2, rel=1e-12)
        assert said[f"mean delta^2({P})"] == pytest.approx(mean_window_divergence(q, v, P) ** 2, rel=1e-12)
        assert over_d2[f"delta^2({P}) over d^2"] == pytest.approx(median_bound(q, P, 1.0) ** 2, rel=1e-12)
        assert over_d2[f"mean delta^2({P}) over d^2"] == pytest.approx(median_bound(q, P, 1.0, average=True) ** 2)
    evaluation = exact.bound(THEOREM, KNOWN, interval=3)
    assert float(evaluation.constants["nu"].value) == pytest.approx(cohort_divergence(q, v), rel=1e-12)


@pytest.mark.parametrize("cutoff", [1, 4, np.inf])
def test_weights_and_their_error_are_those_of_the_full_record(cutoff: float) -> None:
    p = np.array([0.2, 0.5, 0.9])
    present = np.random.default_rng(3).random((60, 3)) < p
    accountant = ParticipationAccountant(3, Bernoulli(3, p), cutoff=cutoff)
    for row in present:
        accountant.add(np.flatnonzero(row))
    said, paths = accountant.quantities()["fedau"], weight_paths(present, cutoff)
    assert said["weight error"] == pytest.approx(((p * paths - 1) ** 2).mean(), rel=1e-10)
    assert said["expected weight error W"] == pytest.approx(float(weight_error(p, cutoff, 60)), rel=1e-12)


def test_mixing_is_the_correlation_of_the_record_and_tends_to_that_of_the_chain() -> None:
    process = GroupMarkov(6, 3, leave=0.2)
    present = process.matrix(4000, np.random.default_rng(0)) > 0
    accountant = ParticipationAccountant(6)
    for row in present:
        accountant.add(np.flatnonzero(row))
    found, off = accountant.mixing(), present - present.mean(axis=0)
    expected = (off[1:] * off[:-1]).sum() / (3999 * present.var(axis=0).sum())
    assert found.correlation == pytest.approx(expected, rel=1e-10)
    assert found.correlation == pytest.approx(markov_correlation(3, 0.2), abs=0.03)
    assert found.memory == pytest.approx(1 / (1 - expected))


def test_the_bound_is_that_of_confronting_the_run_with_its_record() -> None:
    problem, q = toy_example(), np.tile(np.eye(3), (10, 1))
    run = moments(GeneralizedFedAvg(1 / 36, 1, server_multiplier=6, interval=3), problem, q)
    comparison = confront(run, THEOREM, "explicit")
    known = {n: c for n, c in comparison.constants.items() if n in ("L", "F", "I", "gamma", "eta", "sigma")}
    accountant = fed(ParticipationAccountant(3, intervals=[3], offsets=problem.offsets()), q)
    assert float(accountant.bound(THEOREM, known, "explicit").value) == pytest.approx(float(comparison.bound[-1]))


def test_a_guarantee_needs_every_assumption() -> None:
    accountant = fed(ParticipationAccountant(3, intervals=[3]), np.tile(np.eye(3), (10, 1)))
    assert accountant.bound(THEOREM, KNOWN, assume="all").guarantee
    unsaid = accountant.bound(THEOREM, KNOWN)
    assert not unsaid.guarantee and "exogenous-participation" in unsaid.why_not[-1]
    assert unsaid.assumptions["weights"] == "checked"


def test_weights_that_do_not_sum_to_one_are_not_covered_even_if_all_is_assumed() -> None:
    accountant = ParticipationAccountant(3)
    for _ in range(5):
        accountant.add({0: 0.5, 1: 0.4})
    for ask in (accountant.bound, lambda *args, **named: accountant.rounds_left(args[0], 1.0, args[1], **named)):
        with pytest.raises(FedboundsError, match="does not cover this run: in 5 of 5 rounds the weights do not sum"):
            ask(THEOREM, KNOWN | {"P": 1}, assume="all")


def test_a_round_without_participants_is_a_round() -> None:
    accountant = ParticipationAccountant(2)
    accountant.add([])
    accountant.add([1])
    assert accountant.rounds == 2 and accountant.participations.tolist() == [0, 1]
    alone = ParticipationAccountant(2)
    alone.add([1])
    bounds = [one.bound(THEOREM, KNOWN | {"P": 1}, assume="all").value for one in (accountant, alone)]
    assert bounds[0] == bounds[1]
    assert accountant.quantities()["fedau"] != alone.quantities()["fedau"]  # its intervals count every round


def test_a_refuted_declaration_covers_nothing() -> None:
    p, rng = np.array([0.3, 0.6, 0.9]), np.random.default_rng(1)
    accountant = ParticipationAccountant(3, Bernoulli(3, p), cutoff=5)
    for _ in range(200):
        accountant.add(np.flatnonzero(rng.random(3) < p))
    assert accountant.bound(FEDAU, KNOWN_FEDAU, assume="all").guarantee
    for t in range(200):
        accountant.add([t % 3])
    found = accountant.bound(FEDAU, KNOWN_FEDAU, assume="all")
    assert accountant.conformity().status == "refuted"
    assert not found.guarantee and found.why_not[0].startswith("not known to cover this run: not bernoulli")
    left = accountant.rounds_left(FEDAU, 15.0, KNOWN_FEDAU, assume="all")
    assert not left.guarantee and left.why_not[0].startswith("not known to cover this run: not bernoulli")


def test_what_is_about_any_record_is_covered_whatever_was_declared() -> None:
    accountant = fed(ParticipationAccountant(3, WithoutReplacement(3, 1), intervals=[3]), np.tile(np.eye(3), (40, 1)))
    assert accountant.conformity().status == "refuted"
    assert accountant.bound(THEOREM, KNOWN, assume="all").guarantee


@pytest.mark.parametrize(
    "process, result, name",
    [
        (Markovian(3, 0.5), FEDAU, "bernoulli-participation"),
        (Cyclic(3, random_phase=True), "arbitrary-participation/corollary-4.8", "independent-rounds"),
        (Cyclic(3), "arbitrary-participation/corollary-4.8", "unbiased-sampling"),
    ],
)
def test_a_process_of_another_kind_violates_what_it_does_not_have(process, result: str, name: str) -> None:
    accountant = ParticipationAccountant(3, process)
    for t in range(12):
        accountant.add([t % 3])
    known = dict(KNOWN_FEDAU) if result == FEDAU else dict(L=1, F=1, I=1, d=1, sigma=0.1, P=1, c=0.1)
    found = accountant.bound(result, known, assume="all")
    assert found.assumptions[name] == "violated" and not found.guarantee


def test_rates_that_are_only_estimated_guarantee_nothing() -> None:
    accountant = ParticipationAccountant(2)
    for present in ([0], [0, 1], [1], [0]):
        accountant.add(present)
    found = accountant.bound(FEDAU, KNOWN_FEDAU, assume="all")
    assert found.constants["p"].source == "estimated" and "p is only estimated" in found.why_not


def test_a_result_of_which_nobody_keeps_an_account_is_not_covered() -> None:
    accountant = ParticipationAccountant(2)
    accountant.add([0])
    accountant.accounts.clear()
    found = accountant.bound(THEOREM, KNOWN | dict(T=1, P=1, rho=1, nu=0, beta=2, delta=2), assume="all")
    assert found.why_not[0].startswith("not known to cover this run: arbitrary-participation has no account")


def test_rounds_left_are_the_rounds_of_the_whole_run_less_those_seen() -> None:
    accountant = fed(ParticipationAccountant(3, WithoutReplacement(3, 2)), np.array([[0.5, 0.5, 0], [0, 0.5, 0.5]]))
    known = KNOWN | {"P": 1, "gamma": 1e-3, "eta": 1, "d": 0.1}
    left = accountant.rounds_left(THEOREM, 1.0, known, "explicit", assume="all")
    rho = np.sqrt(0.5)
    delta = 0.1 * np.sqrt(3 * 3 * (3 - 2) / (2 * 9))  # (15): d^2 N times N times the variance (N - S)/(S N^2)
    by_hand = dict(known, rho=rho, beta=delta, nu=0.1, delta=delta)
    del by_hand["d"]
    expected = rounds(THEOREM, 1.0, by_hand, form="explicit")
    assert left.answer.rounds == expected.rounds and left.more == expected.rounds - 2 and left.guarantee


def test_rounds_left_of_an_unknown_process_are_no_guarantee() -> None:
    accountant = fed(ParticipationAccountant(3, intervals=[3]), np.tile(np.eye(3), (10, 1)))
    left = accountant.rounds_left(THEOREM, 4.5, KNOWN, "explicit", assume="all")
    assert left.more is not None and not left.guarantee
    assert any("delta is only estimated" in reason for reason in left.why_not)


def test_a_result_that_sets_step_sizes_by_the_rounds_has_none_left_to_bound() -> None:
    accountant = ParticipationAccountant(4, Full(4))
    accountant.add(range(4))
    known = dict(L=1, F=1, I=1, P=1, sigma=0, d=1)
    left = accountant.rounds_left("arbitrary-participation/corollary-3.2", 1.0, known, assume="all")
    assert not left.guarantee and any("step sizes by the number of rounds" in reason for reason in left.why_not)


@pytest.mark.parametrize(
    "process",
    [None, Bernoulli(4, 0.5), WithoutReplacement(4, 2), Permutation(4, 2), Markovian(4, 0.5), GroupMarkov(4, 2, 0.5)],
    ids=lambda p: "none" if p is None else p.kind,
)
def test_a_saved_account_goes_on_bit_for_bit_the_same(process, tmp_path) -> None:
    source = process or Bernoulli(4, 0.7)
    q = source.matrix(80, np.random.default_rng(5))
    v = np.random.default_rng(6).standard_normal((4, 2))
    settings = dict(process=process, intervals=[3, 7], cutoff=6, offsets=v)
    whole = fed(ParticipationAccountant(["a", "b", 3, "d"], **settings), np.zeros((0, 4)))
    halved, names = ParticipationAccountant(["a", "b", 3, "d"], **settings), ["a", "b", 3, "d"]
    for t, row in enumerate(q):
        present = [names[n] for n in np.flatnonzero(row)]
        whole.add(present)
        halved.add(present)
        if t % 10 == 4:
            halved.save(tmp_path / "account.json")
            halved = ParticipationAccountant.load(tmp_path / "account.json")
    assert halved.to_json() == whole.to_json()
    assert halved.quantities() == whole.quantities() and halved.conformity() == whole.conformity()


def test_the_state_does_not_grow_with_the_rounds() -> None:
    accountant, sizes = ParticipationAccountant(10, Bernoulli(10, 0.5), intervals=[5]), []
    rng = np.random.default_rng(0)
    for _ in range(2):
        for _ in range(200):
            accountant.add(np.flatnonzero(rng.random(10) < 0.5))
        state = json.loads(accountant.to_json())["state"]
        sizes.append(sum(np.size(part["values"]) for part in state.values()))
    assert sizes[0] == sizes[1] < 40 * 10


BAD = [
    (lambda: ParticipationAccountant(0), "clients = 0 must be an integer"),
    (lambda: ParticipationAccountant(["a", "a"]), "names of their own"),
    (lambda: ParticipationAccountant([True]), "must be a name"),
    (lambda: ParticipationAccountant(2, Full(3)), "the process is of 3 clients, and there are 2"),
    (lambda: ParticipationAccountant(2, "full"), "must be a participation process"),
    (lambda: ParticipationAccountant(2, intervals=[0]), r"intervals\[0\] = 0"),
    (lambda: ParticipationAccountant(2, intervals=3), "intervals = 3 must be a list"),
    (lambda: ParticipationAccountant(2, cutoff=0.5), "cutoff = 0.5"),
    (lambda: ParticipationAccountant(2, error=0), "error = 0"),
    (lambda: ParticipationAccountant(2, offsets=[[1.0]]), "offsets v are of 1 clients"),
    (lambda: ParticipationAccountant(2).add([2]), "unknown client '2'; known: 0, 1"),
    (lambda: ParticipationAccountant(2).add([True]), "unknown client 'True'"),
    (lambda: ParticipationAccountant(2).add([0, 0]), "named twice"),
    (lambda: ParticipationAccountant(["ab"]).add("ab"), "participants = 'ab' must be a list"),
    (lambda: ParticipationAccountant(2).add([0], [1, 2]), "1 participants and 2 weights"),
    (lambda: ParticipationAccountant(2).add([0], [float("nan")]), "must be a positive number"),
    (lambda: ParticipationAccountant(2).add({0: -1.0}), "the weight -1 of client 0"),
    (lambda: ParticipationAccountant(2).add({0: 1.0}, [1.0]), "given twice"),
    (lambda: ParticipationAccountant(2).bound(THEOREM, {}), "no round was added"),
    (lambda: ParticipationAccountant(2).mixing(), "needs two rounds"),
    (lambda: ParticipationAccountant.from_json("{"), "no JSON"),
    (lambda: ParticipationAccountant.from_json("{}"), "must be of the format"),
]


@pytest.mark.parametrize("act, message", BAD, ids=[message for _, message in BAD])
def test_bad_input_is_one_line(act, message: str) -> None:
    with pytest.raises(FedboundsError, match=message) as refused:
        act()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("cutoff"),
        lambda d: d["state"].pop("presences/rounds"),
        lambda d: d["state"]["presences/present"].update(values=[1]),
        lambda d: d["state"]["presences/present"].update(values="ab"),
        lambda d: d.update(state=3),
        lambda d: d.update(process={"kind": "nobody"}),
    ],
)
def test_a_damaged_account_is_one_line(damage, tmp_path) -> None:
    accountant = ParticipationAccountant(2)
    accountant.add([0])
    document = json.loads(accountant.to_json())
    damage(document)
    with pytest.raises(FedboundsError, match="damaged: its checksum"):
        ParticipationAccountant.from_json(json.dumps(document))
    document.pop("checksum")
    document["checksum"] = checksum(document)  # damaged before it was written
    with pytest.raises(FedboundsError, match="damaged"):
        ParticipationAccountant.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("presences/present", [-5, 1]),
        ("presences/present", [999, 1]),
        ("presences/twice", [49, 49]),
        ("presences/rounds", [3]),
        ("fedau/present", [50, 50]),
        ("fedau/squares", [0.0, 0.0]),
        ("fedau/weights", [0.5, 1.0]),
        ("arbitrary-participation/windows", [49]),
        ("arbitrary-participation/largest", [-1.0]),
        ("arbitrary-participation/summed", [1e9]),
        ("arbitrary-participation/norms", [1.0, 0.5]),
    ],
)
def test_a_saved_account_is_of_rounds_that_can_have_been(part: str, values: list[float]) -> None:
    accountant = fed(ParticipationAccountant(2), np.tile(np.eye(2), (25, 1)))
    document = json.loads(accountant.to_json())
    assert len(document["state"][part]["values"]) == len(values)
    document["state"][part]["values"] = values
    del document["checksum"]
    document["checksum"] = checksum(document)
    with pytest.raises(FedboundsError, match=r"the account is damaged: .*, which no (50|3) rounds can give"):
        ParticipationAccountant.from_json(json.dumps(document))


def test_constants_that_contradict_the_rounds_are_refused() -> None:
    accountant = fed(ParticipationAccountant(3, intervals=[3]), np.tile(np.eye(3), (10, 1)))
    with pytest.raises(FedboundsError, match="T = 29 is given, and it is 30"):
        accountant.bound(THEOREM, KNOWN | {"T": 29})
    with pytest.raises(FedboundsError, match=r"rho = 0\.5 is given, and it is 1"):
        accountant.bound(THEOREM, KNOWN | {"rho": 0.5})
    with pytest.raises(FedboundsError, match="interval = 2 was not accounted"):
        accountant.bound(THEOREM, KNOWN | {"P": 2})


def test_a_bad_round_changes_nothing() -> None:
    accountant = ParticipationAccountant(2, Bernoulli(2, 0.5))
    accountant.add([0])
    before = accountant.to_json()
    for bad in ([0, 5], [1, 1], {0: 0.0}):
        with pytest.raises(FedboundsError):
            accountant.add(bad)
    assert accountant.to_json() == before


def test_an_accountant_needs_no_torch() -> None:
    code = "import fedbounds, sys; fedbounds.ParticipationAccountant(2).add([0]); print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_in_a_console_an_accountant_is_one_line():
    accountant = ParticipationAccountant(3, Bernoulli(3, 0.5))
    accountant.add([0, 2])
    assert repr(accountant) == "<ParticipationAccountant of 3 clients: 1 rounds, Bernoulli declared>"


EXPECTED = THEOREM + "-expected"
BALANCED = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]]
SMALL = dict(L=1, F=1, I=2, gamma=0.002, eta=10, sigma=0.5, d=0.5)


def added(process, rounds, **settings) -> ParticipationAccountant:
    accountant = ParticipationAccountant(4, process, **settings)
    for present in rounds:
        accountant.add(present)
    return accountant


@pytest.mark.parametrize("process", [None, Bernoulli(4, 0.95)], ids=["none", "empty rounds"])
def test_a_lucky_record_is_no_expectation(process) -> None:
    known = dict(L=1, F=1e-3, I=1, gamma=0.05, eta=10, sigma=0, d=1)
    for result in (EXPECTED, "arbitrary-participation/corollary-4.8"):
        own = known if result == EXPECTED else dict(L=1, F=1e-3, I=1, sigma=0, d=1, c=0.1)
        found = added(process, [range(4)] * 10).bound(result, own, interval=1, assume="all")
        assert not found.guarantee and found.why_not[0].startswith("its constants are expectations over participation")
    found = added(process, [range(4)] * 10).bound(THEOREM, known, interval=1, assume="all")
    assert found.guarantee and float(found.constants["delta"].value) == 0
    given = known | dict(rho=1, nu=1, beta=0.5, delta=0.5)
    assert added(process, [range(4)] * 10).bound(EXPECTED, given, interval=1, assume="all").guarantee


def test_a_result_in_expectation_gets_the_expectations_of_the_declared_process() -> None:
    accountant = added(WithoutReplacement(4, 2), BALANCED * 2, intervals=[6])
    found = accountant.bound(EXPECTED, SMALL, interval=6, assume="all")
    assert found.guarantee and float(found.constants["delta"].value) == pytest.approx(np.sqrt(0.5**2 * 4 * 4 / 48 / 2))
    assert float(accountant.bound(THEOREM, SMALL, interval=6, assume="all").constants["delta"].value) == 0
    left = accountant.rounds_left(EXPECTED, float(found.value), SMALL, interval=6, assume="all")
    assert left.more == 0 and left.guarantee


def test_a_random_process_is_not_regularized_however_even_its_rounds_are() -> None:
    known = dict(L=1, F=1, I=2, sigma=0.5, d=0.5)
    random, cyclic = WithoutReplacement(4, 2), Full(4)
    for process, holds in ((random, "violated"), (cyclic, "checked")):
        rounds_so_far = BALANCED * 2 if process is random else [range(4)] * 12
        accountant = added(process, rounds_so_far, intervals=[6])
        found = accountant.bound("arbitrary-participation/corollary-4.3-expected", known, interval=6, assume="all")
        assert found.assumptions["regularized"] == holds


def test_rounds_left_names_the_result_that_it_is_about() -> None:
    left = added(WithoutReplacement(4, 2), BALANCED * 2, intervals=[6]).rounds_left(
        THEOREM, 3, SMALL, interval=6, assume="all"
    )
    assert left.guarantee and left.answer.evaluation.result.key == EXPECTED
    assert str(left).startswith(f"{EXPECTED} [sharp]: {left.more} more rounds after 12   guarantee: yes")
    assert "participation is random: compared with" in str(left)
    explicit = added(WithoutReplacement(4, 2), BALANCED * 2, intervals=[6]).rounds_left(
        THEOREM, 30, SMALL | {"P": 6}, "sharp:worst", assume="all"
    )
    assert explicit.more == 0 and explicit.guarantee and str(explicit).startswith(f"{THEOREM} [sharp:worst]: 0 more")


def test_none_are_left_where_the_bound_so_far_is_the_guarantee() -> None:
    accountant = fed(ParticipationAccountant(3, intervals=[3]), np.tile(np.eye(3), (40, 1)))
    found = accountant.bound(THEOREM, KNOWN, assume="all")
    left = accountant.rounds_left(THEOREM, float(found.value), KNOWN, assume="all")
    assert found.guarantee and left.more == 0 and left.guarantee and left.answer.rounds <= accountant.rounds
    assert not accountant.rounds_left(THEOREM, float(found.value) * 0.9, KNOWN, assume="all").guarantee
    assert not accountant.rounds_left(THEOREM, float(found.value), KNOWN).guarantee


def test_d_is_not_called_unused_where_the_divergences_follow_from_it() -> None:
    accountant = fed(ParticipationAccountant(3, intervals=[3]), np.tile(np.eye(3), (40, 1)))
    found = accountant.bound(THEOREM, KNOWN, assume="all")
    assert "not used by this form" not in str(found)
    assert "upper bound, from d = 2, of the left side of (7)" in str(found)
    exact = fed(ParticipationAccountant(3, intervals=[3], offsets=toy_example().offsets()), np.tile(np.eye(3), (4, 1)))
    assert exact.bound(THEOREM, KNOWN, assume="all").unused == ("d",)


def test_one_d_in_place_of_three_divergences_is_what_the_error_says_to_give() -> None:
    accountant = fed(ParticipationAccountant(3, intervals=[3]), np.tile(np.eye(3), (4, 1)))
    known = {name: value for name, value in KNOWN.items() if name != "d"}
    with pytest.raises(FedboundsError, match=r"needs nu, beta, delta: give d \(gradient_divergence_sup\), from which"):
        accountant.bound(THEOREM, known)
    assert accountant.bound(THEOREM, known | dict(nu=1, beta=1, delta=1)).value > 0


WITH_EMPTY = [[0, 1], [], [2, 3], [0, 2], [], [], [1, 3], [0, 3], [1, 2], []]
PLAIN = dict(L=1, F=1, I=2, gamma=0.01, eta=1, sigma=0.5, d=0.5)


def test_an_empty_round_changes_no_model_and_is_not_counted() -> None:
    """Exact moments with and without the empty rounds, and the accountant's bound, which is that of the shorter run."""
    q = np.zeros((10, 4))
    for t, present in enumerate(WITH_EMPTY):
        q[t, present] = 1 / max(1, len(present))
    kept = q.any(axis=1)
    problem = Quadratic([1.0, 0.5], np.arange(8.0).reshape(4, 2), x0=[2.0, 1.0], noise=0.1)
    algorithm = GeneralizedFedAvg(0.1, 2)
    whole = moments(algorithm, problem, q).gradient_norm_squared
    short = moments(algorithm, problem, q[kept]).gradient_norm_squared
    at = np.concatenate([[0], np.cumsum(kept)])  # the same model in the shorter run
    np.testing.assert_allclose(whole, short[at], rtol=1e-12)
    assert min(whole[:-1]) <= min(short[:-1])
    for P in (1, 2, 3):
        found = added(None, WITH_EMPTY, intervals=[2, 3]).bound(THEOREM, PLAIN, interval=P, assume="all")
        dropped = added(None, [r for r in WITH_EMPTY if r], intervals=[2, 3])
        expected = dropped.bound(THEOREM, PLAIN, interval=P, assume="all")
        assert found.value == expected.value and found.guarantee and found.constants["T"].value == 6
        assert found.constants["T"].note == "of 10 rounds; 4 without participants change nothing"


def test_windows_with_an_empty_round_are_refused_where_they_are_amplified() -> None:
    account = added(None, WITH_EMPTY, intervals=[2])
    with pytest.raises(
        FedboundsError, match=r"4 of 10 rounds have no participants, so windows of 2 rounds .*: give eta=1"
    ):
        account.bound(THEOREM, PLAIN | {"eta": 2}, interval=2, assume="all")
    assert account.bound(THEOREM, PLAIN | {"eta": 2, "gamma": 0.001}, interval=1, assume="all").guarantee
    with pytest.raises(FedboundsError, match="4 of 10 rounds have no participants, and a result in expectation"):
        account.bound(EXPECTED, PLAIN, interval=1, assume="all")
    problem = Quadratic([1.0], [[0.0], [1.0]], x0=[2.0])
    amplified = GeneralizedFedAvg(0.1, 1, server_multiplier=2, interval=2)
    q = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    whole, short = (moments(amplified, problem, each).gradient_norm_squared for each in (q, q[[0, 2]]))
    assert whole[2] != pytest.approx(short[1])  # amplified alone, and with the next round


def test_rounds_left_counts_rounds_with_participants() -> None:
    left = added(None, WITH_EMPTY, intervals=[2]).rounds_left(THEOREM, 1.0, PLAIN, interval=2, assume="all")
    short = added(None, [r for r in WITH_EMPTY if r], intervals=[2])
    assert (left.seen, left.more) == (6, short.rounds_left(THEOREM, 1.0, PLAIN, interval=2, assume="all").more)
    assert "4 of 10 rounds had no participants" in str(left)


def test_an_account_with_empty_rounds_is_saved() -> None:
    account = added(None, WITH_EMPTY, intervals=[2, 3])
    again = ParticipationAccountant.from_json(account.to_json())
    again.add([0])
    account.add([0])
    assert again.quantities() == account.quantities()
    assert account.quantities()["arbitrary-participation"]["rounds without participants"] == 4
