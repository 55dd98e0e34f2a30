"""Training configurations under theorems, before any run: what confront says of the run afterwards."""

import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison import run_legality
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.run_legality import answer_of, check_sweep
from fedbounds.empirical.simulation import simulate as simulation
from fedbounds.empirical.sweep import resolve

THEOREM = "arbitrary-participation/theorem-3.1"
DATA = {"kind": "images", "dataset": "digits", "network": "mlp", "clients": 4, "partition": "even"}


def spec(problem=None, participation=None, rounds=40, **algorithm):
    given = {"kind": "generalized-fedavg", "local_step_size": 0.01, "local_steps": 2} | algorithm
    quadratic = {"kind": "quadratic", "clients": 4, "dimension": 3, "noise": 0.1}
    return {
        "rounds": rounds,
        "problem": problem or quadratic,
        "participation": participation or {"kind": "cyclic", "clients": 4, "groups": 2},
        "algorithm": {key: value for key, value in given.items() if value is not None},
    }


def check(document, *keys, given=None, assume=()):
    (rows,) = check_sweep(resolve(document), keys, given, assume).values()
    return rows if len(keys) != 1 else rows[0]


@pytest.fixture(autouse=True)
def _no_training(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was run")

    monkeypatch.setattr(simulation, "_run_settings", refuse)


def test_the_largest_legal_step_size_is_legal_and_what_is_above_is_not():
    at = {"interval": 2, "server_multiplier": 3.0}
    found = check(spec(local_step_size=0.2, **at), THEOREM)
    assert found.answer == "not legal" and not found.reasons
    limits = [float(c.admissible) for c in found.failed]
    assert {c.limits for c in found.failed} == {"gamma"} and limits == pytest.approx([1 / 48, 1 / 24])  # L = 1
    for factor, answer in ((0.999, "legal"), (1.001, "not legal")):
        assert check(spec(local_step_size=factor * min(limits), **at), THEOREM).answer == answer


@pytest.mark.parametrize(
    ("algorithm", "participation", "reason"),
    [
        ({"momentum": 0.9}, None, "momentum"),
        ({"step_size_schedule": {"kind": "inverse", "delay": 10}}, None, "step size"),
        ({"kind": "fedavgm", "server_momentum": 0.9}, None, "server"),
        ({"local_steps": [1, 2, 3, 4]}, None, "local steps"),
        ({"kind": "fedau", "cutoff": 5, "server_multiplier": 1.0}, None, "fedau"),
        ({}, {"kind": "bernoulli", "clients": 4, "probability": 0.5, "normalize": False}, "sum"),
    ],
)
def test_what_excludes_a_run_is_said_in_the_words_of_confront(algorithm, participation, reason, monkeypatch):
    document = spec(participation=participation, **algorithm)
    found = check(document, THEOREM)
    assert found.answer == "not legal" and reason in " ".join(found.reasons), found.reasons
    monkeypatch.undo()
    setting = run_legality.settings_of(resolve(document))[0]
    problem, process = setting.problem(), setting.process()
    run = simulation.simulate(run_legality.algorithm_from_spec(document["algorithm"]), problem, process, 40)
    try:
        c = confront(run, THEOREM, problem=problem, participation=process)
        said = " ".join(c.why_not)
    except FedboundsError as error:
        said = str(error)
    assert any(one.removeprefix("it violates ").partition(":")[0] in said for one in found.reasons), said


def test_weights_and_phases():
    weighted = spec({"kind": "quadratic", "clients": 4, "dimension": 3, "client_weights": [1, 2, 3, 4]})
    found = check(weighted, "fedau/theorem-2")
    assert found.answer == "not legal"
    phases = spec() | {"algorithms": {"late": {"phases": [{"algorithm": spec()["algorithm"]}]}}}
    del phases["algorithm"]
    assert "phases" in check(phases, THEOREM).reasons[0]


def test_constants_of_a_network_are_asked_for_with_their_meaning():
    document = spec(DATA)
    found = check(document, THEOREM)
    assert found.answer == "undecided" and dict(found.missing) == {"L": "smoothness of every F_n"}
    assert found.open_conditions[:2] == ("gamma <= 1/(12*I*L*P)", "eta*gamma <= 1/(2*I*L*P)")
    assert {"unbiased-noise", "cohort-divergence"} <= {*found.to_assume} and "smooth" not in found.to_assume
    linear = check(spec(DATA | {"network": "linear"}), THEOREM)
    assert not linear.missing and linear.constants["L"].source == "exact"  # a convex model states its smoothness
    assert check(document, THEOREM, given={"L": 0.5}).answer == "undecided"
    assert check(document, THEOREM, given={"L": 0.5}, assume=found.to_assume).answer == "legal"
    assert check(document, THEOREM, given={"smoothness": 50}).answer == "not legal"
    assert "smooth" in check(document, THEOREM, given={"L": 0.5}).not_checked
    assert "smooth" not in check(document, THEOREM, given={"L": 0.5}, assume=["smooth"]).not_checked


def test_constants_that_contradict_the_problem_are_refused():
    with pytest.raises(FedboundsError, match=r"L = 0\.5"):
        check(spec(), THEOREM, given={"L": 0.5})
    with pytest.raises(FedboundsError, match="unknown constant 'l'"):
        check(spec(), THEOREM, given={"l": 2})
    assert check(spec(), THEOREM, given={"L": 100}).answer == "not legal"  # a larger one is one


def test_prescribed_step_sizes_must_be_the_runs():
    found = check(spec(), "arbitrary-participation/corollary-3.2")
    assert found.answer == "not legal" and "sets gamma = " in found.reasons[0]


def test_a_prescribed_step_size_is_compared_though_constants_of_others_are_missing():
    """gamma of Corollary 3.2 needs L and T, eta F and sigma, too."""
    found = check(spec(DATA), "arbitrary-participation/corollary-3.2", given={"L": 0.5})
    assert found.answer == "not legal" and "sets gamma = " in found.reasons[-1] and not found.missing


def test_the_nearest_theorems_are_shown_where_none_is_named():
    rows = check(spec())
    assert 1 <= len(rows) <= 5 and rows[0].claim.startswith(THEOREM) and rows[0].answer == "legal"
    assert [row.rank[0] for row in rows] == sorted(row.rank[0] for row in rows)
    excluded = check(spec(kind="wait-minibatch", interval=2))
    assert {row.answer for row in excluded} == {"not legal"} and len(excluded) <= 5
    assert answer_of(excluded) == "not legal" and answer_of(rows) == answer_of([*excluded, *rows]) == "legal"


def test_a_theorem_file_is_about_its_class_of_problems_its_participation_and_its_algorithm():
    cyclic = {"kind": "cyclic", "clients": 4, "groups": 4}
    document = spec(DATA, cyclic, local_step_size=1e-4, local_steps=2, server_multiplier=1)
    found = check(document, "khaled-2020/local-sgd", given={"L": 1}, assume=["all"])
    assert found.answer == "not legal"
    assert {reason.partition(" ")[0] for reason in found.reasons} >= {"objective", "participation"}
    other = check(document, "karimireddy-2020/scaffold-nonconvex", given={"L": 1})
    assert other.answer == "not legal" and other.reasons == ("it is about scaffold, and the run is generalized-fedavg",)


def test_every_reference_theorem_is_tried_where_none_is_named():
    sampled = {"kind": "without-replacement", "clients": 4, "participants": 2}
    document = spec(DATA, sampled, local_step_size=1 / 45, local_steps=5, server_multiplier=0.2)
    rows = check(document, given={"smoothness": 1}, assume=["all"])
    shown = {row.claim.partition("[")[0]: row.answer for row in rows}
    assert shown["arbitrary-participation/theorem-3.1"] == "not legal"  # its cap is 1/60
    assert shown["jhunjhunwala-2022/fedavg"] == "legal"  # its caps are 1/40 and, times 0.2, 1/120


def test_a_method_parameter_that_a_theorem_file_does_not_have_excludes_the_run():
    everyone = {"kind": "full", "clients": 4}
    file = "khaled-2020/local-sgd"
    assert check(spec(participation=everyone), file, assume=["all"]).answer == "legal"
    for change, reason in (
        ({"server_multiplier": 1000}, "server_multiplier = 1000"),
        ({"server_multiplier": 0.5}, "server_multiplier = 0.5"),
        ({"momentum": 0.9}, "momentum = 0.9"),
        ({"step_size_schedule": {"kind": "inverse", "delay": 10}}, "step_size_schedule"),
        ({"local_steps": [1, 2, 3, 4]}, "local steps that differ"),
    ):
        found = check(spec(participation=everyone, **change), file, assume=["all"])
        assert found.answer == "not legal" and reason in found.reasons[0] and file in found.reasons[0]
    alone = check(spec(participation=everyone, interval=3), file, assume=["all"])
    assert alone.answer == "legal"  # without a multiplier the interval has no effect
    sampled = {"kind": "without-replacement", "clients": 4, "participants": 2}
    own = spec(participation=sampled, server_multiplier=0.2, local_step_size=1e-3)
    assert check(own, "jhunjhunwala-2022/fedavg", assume=["all"]).answer == "legal"
    own["algorithm"]["interval"] = 3
    assert "interval = 3" in check(own, "jhunjhunwala-2022/fedavg", assume=["all"]).reasons[0]


def test_divergences_of_different_hessians_are_violated_unless_assumed():
    different = {"kind": "quadratic", "clients": 4, "dimension": 3, "noise": 0.1, "shared": False}
    at = {"local_step_size": 0.001, "interval": 2}
    found = check(spec(different, **at), THEOREM)
    assert found.answer == "not legal" and any("violates cohort-divergence" in reason for reason in found.reasons)
    names = ["cohort-divergence", "participation-divergence", "window-divergence"]
    assert check(spec(different, **at), THEOREM, assume=names).answer == "legal"
    assert check(spec(different, **at), THEOREM, assume=names[:2]).to_assume == ("window-divergence",)


def test_a_theorem_that_states_no_step_size_leaves_the_answer_open():
    run = spec(participation={"kind": "full", "clients": 4}, local_step_size=100)
    found = check(run, "koloskova-2020/local-sgd-nonconvex", assume=["all"])
    assert found.answer == "undecided" and found.open_conditions[0].startswith("step size: koloskova-2020/")


def test_without_its_data_a_run_file_is_checked_as_far_as_its_tables_go(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDBOUNDS_DATA", str(tmp_path))
    document = spec(DATA | {"dataset": "cifar-10"})
    found = check(document, THEOREM)
    assert found.answer == "undecided" and [*found.missing] == ["L"] and "data_batch_1.bin" in found.notes[-1]
    assert check(document, THEOREM, given={"L": 0.5}, assume=["all"]).answer == "legal"
    assert check(document, THEOREM, given={"L": 50}, assume=["all"]).answer == "not legal"
    linear = spec(DATA | {"dataset": "cifar-10", "network": "linear"}, {"kind": "full", "clients": 4})
    reasons = " ".join(check(linear, "khaled-2020/local-sgd").reasons)
    assert "objective" not in reasons  # nobody knows it without the data
    document["algorithm"]["intervall"] = 2
    with pytest.raises(FedboundsError, match="did you mean interval"):
        check(document, THEOREM)


DRAFT = """\
key = "draft/theorem-1"
measure = "minimum over rounds of squared gradient norm of f"
setting = "nonconvex, smooth, NOISE, PARTICIPATION, arbitrary heterogeneity, LOCAL"
algorithm = "generalized-fedavg"
conditions = ["gamma <= 1/(8*L*I)"]

[assumptions]
ASSUMED

[terms]
"initial gap" = "4*F/(gamma*eta*I*T)"
"gradient noise" = "4*gamma*eta*L*sigma**2/S"
"""
QUADRATIC = {"kind": "quadratic", "clients": 4, "dimension": 3, "noise": 0.1}


def check_draft(
    tmp_path, document, participation="full participation", noise="bounded variance", local="local steps", assumed="",
    assume=(), conditions=None,
):  # fmt: skip
    text = DRAFT.replace("NOISE", noise).replace("PARTICIPATION", participation).replace("LOCAL", local)
    text = text.replace("ASSUMED", assumed).replace('["gamma <= 1/(8*L*I)"]', str(conditions or ["gamma <= 1/(8*L*I)"]))
    (tmp_path / "draft.toml").write_text(text)
    return check(document, str(tmp_path / "draft.toml"), assume=assume)


EVERYONE = [
    {"kind": "full", "clients": 4},
    {"kind": "without-replacement", "clients": 4, "participants": 4},
    {"kind": "permutation", "clients": 4, "participants": 4},
    {"kind": "bernoulli", "clients": 4, "probability": 1.0},
    {"kind": "cyclic", "clients": 4, "groups": 1},
]
SAMPLED = {
    "without replacement": {"kind": "without-replacement", "clients": 4, "participants": 2},
    "with replacement": {"kind": "with-replacement", "clients": 4, "participants": 2},
    "reshuffled": {"kind": "permutation", "clients": 4, "participants": 2},
    "cyclic": {"kind": "permutation", "clients": 4, "participants": 2, "reshuffle": False},
}


@pytest.mark.parametrize("process", EVERYONE, ids=[process["kind"] for process in EVERYONE])
def test_participation_of_all_clients_has_many_names(tmp_path, process):
    found = check_draft(tmp_path, spec(participation=process, server_multiplier=1))
    assert found.answer == "legal", found.reasons


@pytest.mark.parametrize("about", SAMPLED)
def test_kinds_of_participation_are_told_apart(tmp_path, about):
    answers = {}
    for name, process in SAMPLED.items():
        found = check_draft(tmp_path, spec(participation=process, server_multiplier=1), about)
        answers[name] = found.answer
        assert found.answer == "legal" or found.reasons[0].startswith("participation ")
    assert answers == {name: "legal" if name == about else "not legal" for name in SAMPLED}


def test_groups_of_different_sizes_are_not_cyclic(tmp_path):
    uneven = {"kind": "cyclic", "clients": 4, "groups": [0, 0, 0, 1]}
    found = check_draft(tmp_path, spec(participation=uneven, server_multiplier=1), "cyclic")
    assert "participation arbitrary is not covered" in found.reasons[0]


@pytest.mark.parametrize(("process", "many"), [("with replacement", 2), ("reshuffled", 2), ("cyclic", 2)])
def test_the_number_of_participants_is_that_of_the_process(tmp_path, process, many):
    for condition, holds in ((f"S <= {many}", True), (f"S >= {many + 1}", False)):
        run = spec(participation=SAMPLED[process], server_multiplier=1)
        found = check_draft(tmp_path, run, process, conditions=["gamma <= 1/(8*L*I)", condition])
        assert not found.missing and bool(found.conditions[1].holds) == holds


@pytest.mark.parametrize(
    ("change", "draft", "reason"),
    [
        ({}, {"noise": "deterministic"}, "noise bounded is not covered"),
        ({"problem": QUADRATIC | {"noise": 0.0}}, {"noise": "deterministic"}, ""),
        ({}, {"local": "one local step"}, "local-steps alike is not covered"),
        ({"local_steps": 1}, {"local": "one local step"}, ""),
        ({"local_steps": [1, 2, 3, 4]}, {}, "local-steps different is not covered"),
    ],
)
def test_noise_and_local_steps_are_those_of_the_setting(tmp_path, change, draft, reason):
    run = spec(participation=EVERYONE[0], server_multiplier=1, **change)
    reasons = " ".join(check_draft(tmp_path, run, **draft).reasons)
    assert reason in reasons and bool(reasons) == bool(reason)


def test_assumptions_that_the_run_decides_and_those_to_type(tmp_path):
    run = spec(participation=EVERYONE[0], server_multiplier=1)
    names = {name: f'{name} = "as it says"' for name in ("convex-clients", "bounded-noise", "strongly-convex-clients")}
    found = check_draft(tmp_path, run, assumed="\n".join(names.values()))
    assert found.answer == "legal" and {*names} <= {*found.checked} and not found.to_assume
    found = check_draft(tmp_path, run, assumed='mine = "x"\nother = "y"')
    assert found.answer == "undecided" and found.to_assume == ("mine", "other") and not found.not_checked
    assert found.open_conditions == ("mine: x", "other: y")
    again = check_draft(tmp_path, run, assumed='mine = "x"\nother = "y"', assume=found.to_assume)
    assert again.answer == "legal"
    found = check_draft(tmp_path, run, assumed='decaying-steps = "gamma falls"')
    assert found.answer == "not legal" and "it violates decaying-steps: gamma falls" in found.reasons
    concave = spec({"kind": "displaced", "clients": 4, "dimension": 3}, EVERYONE[0])
    found = check_draft(tmp_path, concave, assumed='strongly-convex-clients = "as it says"')
    assert any(reason.startswith("it violates strongly-convex-clients") for reason in found.reasons)


def test_iterations_are_rounds_times_local_steps():
    run = spec(QUADRATIC | {"noise": 0.0}, EVERYONE[0], rounds=80, local_steps=2, server_multiplier=1)
    found = check(run, "khaled-2019/local-gd", assume=["all"])
    assert "K" not in found.missing and "sets gamma" in found.reasons[0]
