"""Bounds against each other: the same numbers as one by one, refused where they speak of different things."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import fedbounds
from fedbounds.bounds.comparison.comparability import comparability, comparability_matrix
from fedbounds.bounds.comparison.compare import compare, parse_vary, whole_settings
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.search.optimize import Infeasible, Minimum, NotAttained, optimize
from fedbounds.bounds.theory.assumptions import DIVERGENCE, EXOGENOUS, SMOOTH
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Form, Result, Source, Term
from fedbounds.bounds.theory.symbols import COUNT, POSITIVE, Constant, Notation, Quantity
from tests.command_line import run

KNOWN = dict(L=1, F=5, I=2, P=2, rho=0.7, sigma=1, nu=2, beta=0.5, delta=0)
STEPS = {"gamma": 1e-3, "eta": 20}
ROUNDS = [10.0, 100.0, 10_000.0]


def result(name):
    return load(f"arbitrary-participation/{name}")


THEOREM, REGULARIZED, INDEPENDENT = result("theorem-3.1"), result("corollary-4.3"), result("corollary-4.8")


def test_a_table_holds_the_evaluations_one_by_one():
    table = compare([(THEOREM, "explicit"), THEOREM], ("rounds", ROUNDS), KNOWN | STEPS)
    for row, form in zip(table.rows, ("explicit", "sharp"), strict=True):
        for i, T in enumerate(ROUNDS):
            one = evaluate(THEOREM, KNOWN | STEPS | {"T": T}, form=form)
            assert row.values[i] == float(one.value) and row.valid[i] == bool(one.valid)
            assert row.dominant[i] == one.dominant
    assert table.name == "T" and table.meaning == "number of rounds"
    assert table.best == (table.rows[1].label,) * 3


def test_step_sizes_are_chosen_anew_at_every_setting():
    within = {"eta": (1, 100)}
    table = compare([(THEOREM, "explicit")], ("T", [3, *ROUNDS]), KNOWN, optimize=("gamma", "eta"), within=within)
    (row,) = table.rows
    for i, T in enumerate([3, *ROUNDS]):
        answer = optimize(THEOREM, KNOWN | {"T": T}, within=within, form="explicit")
        if isinstance(answer, Infeasible):  # P <= T/2 fails at T = 3
            assert T == 3 and np.isnan(row.values[i]) and not row.valid[i] and table.best[i] == ""
        else:
            assert isinstance(answer, Minimum) and row.values[i] == answer.value
            assert {name: values[i] for name, values in row.at.items()} == dict(answer.at)
            assert row.dominant[i] == answer.evaluation.dominant


def test_an_infimum_that_is_not_attained_is_shown_without_step_sizes():
    (row,) = compare([(THEOREM, "explicit")], ("T", [800]), KNOWN, optimize=("gamma", "eta")).rows
    answer = optimize(THEOREM, KNOWN | {"T": 800}, form="explicit")
    assert isinstance(answer, NotAttained) and row.values[0] == answer.infimum
    assert np.isnan(row.at["gamma"][0]) and row.dominant[0] in answer.terms


def test_a_form_that_prescribes_its_steps_is_evaluated_beside_one_whose_steps_are_chosen():
    pairs = [(result("corollary-3.2"), "explicit"), (THEOREM, "explicit")]
    table = compare(pairs, ("T", ROUNDS), KNOWN, optimize=("gamma", "eta"), within={"eta": (1, 1000)})
    assert any("prescribes its step sizes" in note for note in table.notes)
    assert table.rows[0].values[2] == float(evaluate(pairs[0][0], KNOWN | {"T": 1e4}, form="explicit").value)
    assert (table.rows[1].values < table.rows[0].values).all()  # 11.3 < 12 and no detour over 1/min <= sum


def test_any_constant_may_vary_and_each_result_takes_the_constants_it_knows():
    known = {k: v for k, v in KNOWN.items() if k != "sigma"} | {"T": 1000, "d": 1.0, "S": 2, "rho": 0.5**0.5}
    known |= dict(nu=1.0, beta=1.0)
    table = compare([REGULARIZED, result("corollary-3.2")], ("gradient_noise", [0.1, 1, 10]), known)
    assert table.name == "sigma"
    # with beta = nu = d and delta = 0 Corollary 4.3 is Corollary 3.2
    assert table.rows[0].values == pytest.approx(table.rows[1].values, rel=1e-12)


def test_different_left_hand_sides_are_refused_with_the_reason():
    with pytest.raises(FedboundsError, match="bound different things") as error:
        compare([REGULARIZED, INDEPENDENT], ("T", ROUNDS), KNOWN | {"d": 1, "N": 10})
    assert "expectation over gradient noise given participation against expectation over" in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(FedboundsError, match="squared divergence of a window"):
        compare([THEOREM, result("proposition-4.7")], ("P", [1, 2]), KNOWN)


@pytest.mark.parametrize(
    ("other", "cure"),
    [
        ("fedau/theorem-2", "name arbitrary-participation/theorem-3.1-expected instead"),
        ("yang-2021/fedavg-full", "name results whose left-hand sides are comparable"),  # in expectation over less
    ],
)
def test_a_bound_given_participation_beside_one_that_is_not(other, cure):
    with pytest.raises(FedboundsError) as error:
        compare([other, THEOREM], ("T", ROUNDS), {})
    said = str(error.value)
    assert (
        "(no condition) against expectation over gradient noise given participation" in said and "nothing" not in said
    )
    assert "arbitrary-participation/theorem-3.1 [sharp] holds for each record of the participation" in said
    assert cure in said
    if "expected" in cure:
        with pytest.raises(FedboundsError) as error:
            compare([other, cure.split()[1]], ("T", ROUNDS), {})
        assert "bound different things" not in str(error.value)  # constants are missing


def test_an_average_may_stand_beside_a_minimum_with_a_note():
    average = replace(THEOREM, key="made/average", measure=THEOREM.measure.averaged())
    table = compare([(average, "sharp"), (THEOREM, "explicit")], ("T", ROUNDS), KNOWN | STEPS)
    assert table.measure == THEOREM.measure
    assert any("made/average [sharp] bounds more" in note for note in table.notes)
    over_windows = replace(average, measure=replace(average.measure, over="window starts"))
    with pytest.raises(FedboundsError, match="over window starts against over rounds"):
        compare([(over_windows, "sharp"), THEOREM], ("T", ROUNDS), KNOWN | STEPS)


def test_orders_and_refuted_forms_are_marked():
    table = compare([(REGULARIZED, "printed"), (REGULARIZED, "explicit")], ("T", ROUNDS), KNOWN | {"d": 1})
    assert any("hides constants" in note for note in table.notes)
    bounded = load("arbitrary-participation/proposition-4.1")
    table = compare([(bounded, "printed"), (bounded, "repaired")], ("d", np.array([1.0, 2.0])), {})
    assert any("refuted by erratum suprema-at-different-rounds" in note for note in table.notes)


def other_paper(symbol, concept):
    x = Quantity(symbol, symbol, "another constant", concept, COUNT)
    L = Quantity("L", "L", "smoothness", "smoothness", POSITIVE)
    form = Form("explicit", (Term("all", L.symbol / x.symbol + sp.Integer(0)),))
    return Result(
        "other/one", "remark", "other", Source("x", "1"), LEAST_GRADIENT, Notation([x, L]), (form,), "explicit"
    )


def test_a_symbol_that_means_different_things_must_be_given_by_its_concept():
    clients = other_paper("P", "clients")
    with pytest.raises(FedboundsError, match=r"P is interval in .* and clients in other/one: give interval"):
        compare([THEOREM, clients], ("T", ROUNDS), KNOWN | STEPS)
    by_concept = {k: v for k, v in KNOWN.items() if k != "P"} | {"interval": 2, "clients": 7}
    table = compare([THEOREM, clients], ("T", ROUNDS), by_concept | STEPS)
    assert table.rows[1].values.tolist() == [1 / 7] * 3  # flat: it does not know T


def test_the_csv_has_one_row_for_each_setting():
    table = compare([(THEOREM, "explicit")], ("T", ROUNDS), KNOWN, optimize=("gamma", "eta"), within={"eta": (1, 9)})
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    label = table.rows[0].label
    assert [float(row["T"]) for row in rows] == ROUNDS
    assert [float(row[label]) for row in rows] == pytest.approx(table.rows[0].values, rel=1e-11)
    assert [row[f"{label} valid"] for row in rows] == ["yes"] * 3
    assert [float(row[f"{label} eta"]) for row in rows] == pytest.approx(table.rows[0].at["eta"], rel=1e-11)
    assert set(table.to_dict()) >= {"vary", "settings", "measure", "bounds", "best", "notes"}


def test_the_answer_keeps_what_it_was_asked():
    within = {"eta": (1.0, 100.0)}
    constants = KNOWN | {"sigma": Constant(1.0, "estimated"), "M": 7}
    table = compare([(THEOREM, "explicit")], ("T", [800]), constants, optimize=("gamma", "eta"), within=within)
    told = table.to_dict()
    assert told["optimize"] == ["gamma", "eta"] and told["within"] == {"eta": [1.0, 100.0]}
    assert told["constants"]["sigma"]["source"] == "estimated" and told["unit"] == "f^2/x^2"
    assert "M" not in told["constants"] and "not used by any of these forms: M" in table.notes


TWO_PAPERS = {
    "L": 1, "F": 5, "I": 5, "rho": 0.4, "nu": 1, "beta": 1, "gamma": 1e-3, "eta": 1, "sigma": 1, "G": 2, "p": 0.1,
    "N": 10, "K": 20, "interval": 1, "window_divergence": 0.1, "gradient_divergence_sup": 7,
}  # fmt: skip
EXPECTED, FEDAU = "arbitrary-participation/theorem-3.1-expected", "fedau/theorem-2"


def test_a_constant_that_one_result_uses_is_not_called_unused():
    """The other result knows gradient_divergence_sup by another symbol, and does not use it."""
    table = compare([EXPECTED, FEDAU], ("rounds", [100, 1e5]), TWO_PAPERS)
    assert not any(note.startswith("not used") for note in table.notes)
    used = table.to_dict()["constants"]
    assert used["gradient_divergence_sup"]["value"] == 7 and used["window_divergence"]["value"] == 0.1
    assert "delta" not in used  # two meanings
    smaller = compare([EXPECTED, FEDAU], ("rounds", [1e5]), TWO_PAPERS | {"gradient_divergence_sup": 6})
    assert smaller.rows[0].values[0] == table.rows[0].values[1] and smaller.rows[1].values[0] < table.rows[1].values[1]


def test_a_constant_can_be_given_to_one_result_alone():
    known = {"L": 1, "F": 5, "I": 5, "sigma": 1, "nu": 1, "beta": 1, "N": 100, "S": 10, "delta": 0.1}
    known |= {"gradient_divergence_sup": 1, "gamma": 1e-3, "eta": 1}
    corollary = ("arbitrary-participation/corollary-4.8", "repaired:any-I")
    both = compare([EXPECTED, corollary], ("T", [1000, 1e6]), known | {"P": 10})
    assert any("P = 10 as given; its own choice is the whole number nearest" in note for note in both.notes)
    apart = compare([EXPECTED, corollary], ("T", [1000, 1e6]), known | {f"{EXPECTED}.P": 10})
    assert not any("own choice" in note for note in apart.notes)
    assert apart.rows[0].values.tolist() == both.rows[0].values.tolist()
    alone = compare([corollary], ("T", [1000, 1e6]), known)
    assert apart.rows[1].values.tolist() == alone.rows[0].values.tolist() < both.rows[1].values.tolist()
    assert f"{EXPECTED}.P" in apart.to_dict()["constants"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fedau/theorem-1.K", "unknown result in fedau/theorem-1.K 'fedau/theorem-1'; did you mean fedau/theorem-2"),
        ("fedau/theorem-2.KK", "unknown constant of fedau/theorem-2 'KK'; did you mean K"),
        ("fedau/theorem-2.T", "rounds varies; leave fedau/theorem-2.T out"),
    ],
)
def test_a_constant_for_one_result_names_a_result_and_its_symbol(name, message):
    with pytest.raises(FedboundsError, match=re.escape(message)):
        compare([EXPECTED, FEDAU], ("rounds", [100]), TWO_PAPERS | {name: 3})


def test_one_constant_under_two_names_is_given_by_its_concept():
    """FedAU writes delta for what reference theorems write as d."""
    pair = [("fedau/theorem-2", "explicit"), ("jhunjhunwala-2022/fedavg", "explicit")]
    known = dict(L=1, F=1, I=2, sigma=1, G=1, N=10, K=20, p=0.5, gamma=0.001, eta=1, S=5)
    for name, concept_of, key, other in (
        ("delta", "d", "fedau/theorem-2", "jhunjhunwala-2022/fedavg"),
        ("d", "delta", "jhunjhunwala-2022/fedavg", "fedau/theorem-2"),
    ):
        message = f"{name} of {key} is {concept_of} in {other}: give gradient_divergence_sup=... instead of {name}=..."
        with pytest.raises(FedboundsError, match=re.escape(message)):
            compare(pair, ("T", [100]), known | {name: 2})
    by_concept = compare(pair, ("T", [100]), known | {"gradient_divergence_sup": 2})
    by_names = compare(pair, ("T", [100]), known | {"d": 2, "delta": 2})
    assert [row.values.tolist() for row in by_concept.rows] == [row.values.tolist() for row in by_names.rows]


def test_what_hides_constants_or_is_refuted_is_never_the_best():
    table = compare([(THEOREM, "printed"), (THEOREM, "explicit")], ("T", ROUNDS), KNOWN | STEPS)
    hiding, explicit = table.rows
    assert (hiding.values < explicit.values).all() and table.best == (explicit.label,) * 3
    assert (hiding.mark, hiding.name) == ("order only", f"{hiding.label} (order only)")
    assert compare([(THEOREM, "printed")], ("T", ROUNDS), KNOWN | STEPS).best == ("",) * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], ("T", [1]), {}), "nothing to compare"),
        (([THEOREM, THEOREM], ("T", [1]), {}), "named twice"),
        (([THEOREM], ("T", [10]), KNOWN | STEPS | {"T": 3}), "T varies"),
        (([THEOREM], ("T", []), KNOWN | STEPS), "varies over 0 values"),
        (([THEOREM], ("TT", [10]), KNOWN | STEPS), "did you mean T"),
        (([THEOREM], ("T", [10.5]), KNOWN | STEPS), "outside its domain"),
        (([THEOREM], ("T", [10]), KNOWN | STEPS | {"foo": 1}), "unknown constant"),
        (([THEOREM], ("T", [10]), KNOWN | STEPS | {"smoothness": 2}), "L is given twice, unequal"),
        (([THEOREM], ("T", [10]), KNOWN), "needs eta .*gamma"),
    ],
)
def test_a_wrong_comparison_is_one_line(arguments, message):
    with pytest.raises(FedboundsError, match=message) as error:
        compare(*arguments)
    assert "\n" not in str(error.value)


def test_a_range_for_what_is_not_chosen_is_refused():
    with pytest.raises(FedboundsError, match="a range for L"):
        compare([THEOREM], ("T", ROUNDS), KNOWN | STEPS, within={"L": (1, 2)})


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("rounds=10:1000:log:3", "rounds", [10, 100, 1000]),
        ("sigma=0:1:lin:5", "sigma", [0, 0.25, 0.5, 0.75, 1]),
        ("gamma=1/12, 0.5", "gamma", [1 / 12, 0.5]),
        (" T = 7 ", "T", [7]),
        ("T=1:10**2:log:3", "T", [1, 10, 100]),
    ],
)
def test_what_varies_is_read(text, name, values):
    read, numbers = parse_vary(text)
    assert read == name and numbers == pytest.approx(values)


def test_fifty_points_on_a_logarithmic_axis_by_default():
    numbers = parse_vary("T=1:1e6")[1]
    assert len(numbers) == 50 and np.ptp(np.diff(np.log(numbers))) < 1e-12


@pytest.mark.parametrize(
    "text",
    ["T", "=3", "T=", "T=5:1", "T=1:inf", "T=0:5:log", "T=1:5:cube", "T=1:5:log:1", "T=1:5:log:2.5", "T=1:2:log:3:4",
     "T=1:5:log:1e9", "T=a:b", "T=1:5:log:x", "T=__import__('os')"],
)  # fmt: skip
def test_what_varies_is_refused_in_one_line(text):
    with pytest.raises(FedboundsError) as error:
        parse_vary(text)
    assert "\n" not in str(error.value)


def test_counts_vary_over_whole_numbers_only():
    values = np.geomspace(1, 10, 9)
    assert whole_settings([THEOREM], "rounds", values).tolist() == [1, 2, 3, 4, 6, 7, 10]
    assert whole_settings([THEOREM], "sigma", values) is values


def test_bounds_for_different_oracles_are_never_about_the_same_run():
    storm, sgd = "patel-2022/minibatch-storm", "patel-2022/minibatch-sgd-nonconvex"
    found = compare([storm, sgd], ("T", [10, 100]), dict(F=1, sigma=1, N=4, I=2, L=1, Lp=1))
    said = "oracle two-point against one-point"
    assert f"{storm} [printed] and {sgd} [printed] are never about the same run: {said}" in found.notes
    lower = ("patel-2022/centralized-lower-bound", "arjevani-2023/lower-bound-mean-squared-smooth")
    for key in (*lower, "patel-2022/ce-lsgd"):
        assert [d.never_together for d in comparability([key, "ghadimi-2013/sgd"])] == [said]
    assert [d.never_together for d in comparability(lower)] == [""]
    assert [d.never_together for d in comparability(["arjevani-2023/lower-bound-bounded-variance", sgd])] == [""]


# --- The comparability matrix ---


def test_the_matrix_says_for_each_pair_what_differs():
    cells = comparability([(THEOREM, "explicit"), REGULARIZED, INDEPENDENT, (REGULARIZED, "printed")])
    assert len(cells) == 6
    cell = {(c.first.split("/")[1], c.second.split("/")[1]): c for c in cells}
    theorem = cell["theorem-3.1 [explicit]", "corollary-4.3 [sharp]"]
    assert theorem.comparable and theorem.measure == "" and theorem.kind == ""
    assert theorem.participation == ((), ("regularized",))
    assert "window-divergence" in theorem.assumptions[0] and theorem.assumptions[1] == ("bounded-divergence",)
    expected = cell["corollary-4.3 [sharp]", "corollary-4.8 [repaired:integer-P]"]
    assert not expected.comparable and "expectation over" in expected.measure
    assert expected.participation == (
        ("participation-norm", "regularized"),
        ("expected-participation-norm", "unbiased-sampling", "independent-rounds"),
    )
    kinds = cell["corollary-4.3 [sharp]", "corollary-4.3 [printed]"]
    assert kinds.comparable and kinds.kind == "numbers against an O(.) with hidden constants"
    assert kinds.assumptions == kinds.participation == ((), ())


def test_a_label_of_a_paper_does_not_make_an_assumption_another_one():
    assert not SMOOTH.participation and not DIVERGENCE.with_label("Assumption 3").participation
    assert EXOGENOUS.with_label("U3").participation


def test_a_bound_that_nobody_proved_is_marked_and_never_the_best():
    form = THEOREM.form("sharp")
    hundredth = replace(form, terms=tuple(replace(term, expression=term.expression / 100) for term in form.terms))
    planted = replace(THEOREM, key="made/hundredth", forms=(hundredth,))
    table = compare([THEOREM, planted], ("T", ROUNDS), KNOWN | STEPS)
    assert (table.rows[1].values < table.rows[0].values).all()
    assert any("made/hundredth [sharp] is not proved: its verdict is unknown" in note for note in table.notes)
    assert set(table.best) == {table.rows[0].label}


def test_the_matrix_holds_every_form_once_and_agrees_with_compare():
    matrix = comparability_matrix()
    forms = [form for listed in matrix.forms for form in listed]
    assert len(forms) == len(set(forms)) == sum(len(one.forms) for one in fedbounds.results())
    places = range(len(matrix.measures))
    for i in places:
        assert matrix.relation(i, i) == "=" and matrix.why(i, i) == ""
        for j in places:
            if i != j:
                assert matrix.relation(i, j) != "=" and matrix.why(i, j)
                assert matrix.relation(i, j) == {"<=": ">=", ">=": "<=", "": ""}[matrix.relation(j, i)]
    known = {"L": 1, "F": 1, "N": 4}
    for first, second in (((THEOREM, "printed"), (INDEPENDENT, "printed")), (THEOREM, load("fedau/theorem-2"))):
        pair = [one if isinstance(one, tuple) else (one, None) for one in (first, second)]
        i, j = (matrix.find(one.key, form) for one, form in pair)
        assert matrix.relation(i, j) == ""
        with pytest.raises(FedboundsError, match=re.escape(matrix.why(i, j))):
            compare(pair, ("T", [10.0]), known)


def test_the_matrix_of_whole_runs_leaves_lemmas_and_single_windows_out():
    matrix = comparability_matrix().run_results()
    assert all(measure.aggregate != "single" for measure in matrix.measures)
    assert (matrix.find("arbitrary-participation/corollary-4.8"), matrix.find("fedau/theorem-2")) in matrix.pairs
    sides = [(matrix.measures[small], matrix.measures[large]) for small, large in matrix.pairs]
    assert all(small.over == large.over and small.aggregate == "minimum" for small, large in sides)
    with pytest.raises(FedboundsError, match="not in this matrix"):
        matrix.find("fedau/lemma-b.3.1")


def test_the_matrix_is_a_table_a_picture_and_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run("compare", "--matrix", "--out", "matrix.csv")
    assert status == 0 and ": minimum against average" in out and "more, of lemmas" in out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "matrix.csv").read_text(encoding="utf-8"))))
    n = len(comparability_matrix().measures)
    assert len(rows) == n * (n - 1) // 2
    assert run("compare", "--matrix", "tdcd/theorem-1", "--out", "picture.png")[0] == 0
    manifest = json.loads((tmp_path / "picture.json").read_text(encoding="utf-8"))
    assert manifest["provenance"]["relations"] == [["=", "", ""], ["", "=", ""], ["", "", "="]]
    assert json.loads(run("compare", "--matrix", "--json")[1])["schema"] == "fedbounds.comparability/1"
    for words, part in (
        (["--matrix", "--vary", "T=1,2"], "leave them out"),
        (["fedau/theorem-2"], "compare needs --vary"),
    ):
        status, out, err = run("compare", *words)
        assert (status, out) == (2, "") and part in err


def test_forms_about_different_runs_are_said_to_be():
    known = dict(L=2, sigma=0.3, G=1.5, F=4, N=10, K=4, S=5, d=2, q=0.3)
    theorem = "fedmrn/theorem-2"
    table = compare([(theorem, "sharp"), (theorem, "sharp:masks")], ("T", [100]), known)
    told = f"{theorem} [sharp] and {theorem} [sharp:masks] are never about the same run: relative-error against signed"
    assert any(note.startswith(told) for note in table.notes)
    alike = compare([(theorem, "sharp"), (theorem, "repaired")], ("T", [100]), known)
    assert not any("never about the same run" in note for note in alike.notes)


FULL = """\
key = "draft/{name}"
measure = "average over rounds of squared gradient norm of f"
setting = "non-convex, smooth, bounded variance, {participation}"
algorithm = "fedavg"
{expectation}

[terms]
"initial gap" = "4*F/(gamma*I*T)"
"""


def test_where_all_clients_participate_an_expectation_over_participation_is_none(tmp_path):
    texts = {"full": ("full participation", ""), "noise": ("full participation", 'expectation = "gradient noise"'),
             "sampled": ("uniform sampling", ""), "cyclic": ("cyclic", 'expectation = "gradient noise"')}  # fmt: skip
    files = {}
    for name, (participation, expectation) in texts.items():
        files[name] = str(tmp_path / f"{name}.toml")
        (tmp_path / f"{name}.toml").write_text(
            FULL.format(name=name, participation=participation, expectation=expectation)
        )
    known = {"F": 1, "gamma": 0.1, "I": 1}
    for pair in (("full", "noise"), ("noise", "sampled"), ("full", "cyclic")):
        found = compare([files[one] for one in pair], ("T", [1, 10]), known)
        assert found.measure.expectation == "gradient noise" and "is about all clients" in found.notes[0]
        found = compare([files[one] for one in pair[:1]], ("T", [1, 10]), known)
        assert not any("all clients" in note for note in found.notes)
    with pytest.raises(FedboundsError, match="expectation over gradient noise and participation against"):
        compare([files["sampled"], files["cyclic"]], ("T", [1, 10]), known)
    # each method has its own run, of which all that is random is averaged out
    for some in (("full", "noise"), ("noise", "sampled"), ("full", "sampled", "noise")):
        assert compare([files[one] for one in some], ("T", [1, 10]), known, methods=True).rows
    with pytest.raises(FedboundsError, match="bound different things"):
        compare([files["full"], files["sampled"], files["cyclic"]], ("T", [1, 10]), known, methods=True)


def test_where_no_bound_is_proved_the_least_is_still_marked(tmp_path):
    for name, factor in (("small", "1"), ("large", "2")):
        text = FULL.format(name=name, participation="full participation", expectation="")
        (tmp_path / f"{name}.toml").write_text(text.replace("4*F", f"{factor}*F"))
    small, large = (str(tmp_path / f"{name}.toml") for name in ("small", "large"))
    table = compare([large, small], ("T", [1, 10]), {"F": 1, "gamma": 0.1, "I": 1})
    assert table.best == (table.rows[1].label,) * 2 and not any(row.sure for row in table.rows)
    assert table.to_dataframe() is not None and "least (none is sure)" in table.tables()[0].columns
    status, said, _ = run("compare", large, small, "--vary", "T=1,10", "F=1", "I=1", "gamma=0.1")
    assert status == 0 and "* the least valid bound, of which none is proved" in said and said.count("~*") == 2


def test_two_files_with_one_key_are_named(tmp_path):
    for name in ("a", "b"):
        text = FULL.format(name="same", participation="full participation", expectation="")
        (tmp_path / f"{name}.toml").write_text(text)
    files = [str(tmp_path / f"{name}.toml") for name in ("a", "b")]
    with pytest.raises(FedboundsError) as error:
        compare(files, ("T", [1, 10]), {"F": 1, "gamma": 0.1, "I": 1})
    assert str(error.value) == f"{files[0]} and {files[1]} have the same key draft/same; change one of them"
    with pytest.raises(FedboundsError, match="is named twice"):
        compare([files[0], files[0]], ("T", [1, 10]), {"F": 1, "gamma": 0.1, "I": 1})
