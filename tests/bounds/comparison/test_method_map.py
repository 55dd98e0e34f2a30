"""Maps of the smallest bound: the same as one by one, refused where bounds do not rank their methods."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from fedbounds.bounds.comparison.compare import compare
from fedbounds.bounds.comparison.method_map import MOST_CELLS, map_methods
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.search.optimize import Minimum, NotAttained, optimize
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Result, Term

MINIBATCH, ACCELERATED = "patel-2024/minibatch-sgd-convex", "patel-2024/accelerated-minibatch-sgd-convex"
LOCAL = "woodworth-2020/local-sgd-convex"
KNOWN = dict(L=1, D2=1, N=10, T=20)
SPAN = np.geomspace(1e-3, 10, 9)
FEDAVG, FEDVARP = "jhunjhunwala-2022/fedavg", "jhunjhunwala-2022/fedvarp"
SAMPLED = dict(L=1, F=1, N=20, S=5, I=5, T=1000)


def regions(first=MINIBATCH, local: Result | str = LOCAL, **changed):
    return map_methods([first, local], ("I", [1, 3, 30, 300]), ("d", SPAN), {**KNOWN, "sigma": 0.01, **changed})


def test_the_winner_is_the_smallest_of_the_bounds_one_by_one():
    found = map_methods([MINIBATCH, ACCELERATED, LOCAL], ("sigma", SPAN), ("d", SPAN), {**KNOWN, "I": 100})
    assert set(found.winner.ravel()) == {1, 2}
    rng = np.random.default_rng(0)
    for _ in range(12):
        i, j = rng.integers(9, size=2)
        known = {**KNOWN, "I": 100, "sigma": SPAN[i]}
        alone = [evaluate(key, known | ({"d": SPAN[j]} if key == LOCAL else {})) for key in found_keys(found)]
        assert found.values[:, j, i] == pytest.approx([float(one.value) for one in alone])
        assert found.winner[j, i] == np.argmin([float(one.value) for one in alone])
        first, second = sorted(float(one.value) for one in alone)[:2]
        assert found.advantage[j, i] == pytest.approx(second / first)


def found_keys(found):
    return [label.partition(" ")[0] for label in found.labels]


def test_every_method_has_its_own_best_step_sizes():
    methods, within = [(FEDAVG, "printed"), FEDVARP], {"eta": (1.0, 100.0)}
    axes = ("d", [0.1, 1, 10]), ("sigma", [0.05, 5])
    found = map_methods(methods, *axes, SAMPLED, optimize=("gamma", "eta"), within=within)
    rng = np.random.default_rng(1)
    for _ in range(3):
        i, j = rng.integers(3), rng.integers(2)
        known = {**SAMPLED, "d": axes[0][1][i], "sigma": axes[1][1][j]}
        alone = []
        for key in (FEDAVG, FEDVARP):
            answer = optimize(key, known, ("gamma", "eta"), within=within, form="printed")
            assert isinstance(answer, Minimum | NotAttained)
            alone.append(answer.value if isinstance(answer, Minimum) else answer.infimum)
        assert found.values[:, j, i] == pytest.approx(alone)
        assert found.winner[j, i] == np.argmin(alone)


def test_a_planted_factor_moves_the_border():
    local = load(LOCAL)
    form = local.form()
    terms = tuple(Term(t.name, 4 * t.expression if t.name == "client drift" else t.expression) for t in form.terms)
    planted = replace(local, forms=(replace(form, terms=terms),))
    whole, mutated = regions().winner, regions(local=planted).winner
    assert (whole <= 1).all() and set(whole.ravel()) == {0, 1}
    assert (mutated <= whole).all() and (mutated < whole).any()  # local SGD loses settings and wins none
    assert (regions(T=2000).winner != whole).any()
    assert (regions(N=10_000).winner == whole).all()  # N is in a term that both have


def test_equal_bounds_count_for_the_first_and_an_invalid_bound_is_not_the_smallest():
    assert (regions().winner[:, 0] == 0).all()  # one local step: local SGD has more terms, minibatch SGD the same rest
    twins = map_methods([ACCELERATED, MINIBATCH], ("sigma", [0.1, 1]), ("L", [1, 2]), dict(D2=1, N=10, T=1, I=5))
    assert (twins.winner == 0).all() and twins.advantage == pytest.approx(1)
    noisy = map_methods([MINIBATCH, LOCAL], ("sigma", [0.1, 1e3]), ("d", [0.1, 1]), {**KNOWN, "I": 5})
    assert np.isnan(noisy.values[0, :, 1]).all() and (noisy.winner[:, 1] == 1).all()  # minibatch SGD has a condition
    both = map_methods([MINIBATCH, ACCELERATED], ("sigma", [0.1, 1e3]), ("L", [1, 2]), dict(D2=1, N=10, T=20, I=5))
    assert (both.winner[:, 1] == -1).all() and sum(both.wins.values()) == 2


def test_the_table_has_every_setting_and_the_document_no_varying_constant():
    found = regions()
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(rows) == 36 and {row["smallest"] for row in rows} == set(found.labels)
    for row in rows:
        least = min(found.labels, key=lambda label: float(row[label]))
        assert row["smallest"] == least
    document = found.to_dict()
    assert set(document["constants"]) == {"L", "D2", "N", "T", "sigma"} and document["order_only"]
    assert document["wins"] == {label: sum(r["smallest"] == label for r in rows) for label in found.labels}


def test_counts_become_whole_and_values_sorted():
    found = map_methods([MINIBATCH, LOCAL], ("I", [9.7, 1.2, 10.1]), ("d", [1, 0.1]), {**KNOWN, "sigma": 1})
    assert found.x_values.tolist() == [1, 10] and found.y_values.tolist() == [0.1, 1]


NONCONVEX = dict(L=1, F=1, N=10, T=100, S=10)
REFUSED = [
    ([MINIBATCH, "patel-2024/convex-lower-bound"], KNOWN, "is a lower bound, which does not rank methods"),
    (
        ["patel-2022/minibatch-sgd-nonconvex", "patel-2022/minibatch-storm"],
        NONCONVEX,
        "different oracles: one-point against two-point",
    ),
    (["patel-2022/minibatch-sgd-nonconvex", MINIBATCH], NONCONVEX, "squared gradient norm of f against function gap"),
    ([(FEDAVG, "printed"), (FEDAVG, "explicit")], SAMPLED, f"one kind is expected: name {FEDAVG}:printed"),
    ([LOCAL, "khaled-2020/local-sgd"], KNOWN, "leave one out .khaled-2020/local-sgd has no O"),
    ([MINIBATCH], KNOWN, "at least two bounds"),
]


def test_a_method_of_all_clients_stands_beside_one_that_samples_them():
    """The expectation is over all that is random in the run of each."""
    known = {name: value for name, value in NONCONVEX.items() if name != "I"}
    both = ["patel-2022/minibatch-sgd-nonconvex", "karimireddy-2020/scaffold-nonconvex"]
    found = map_methods(both, ("I", [2, 20]), ("sigma", [0.1, 1]), known)
    assert (found.winner >= 0).all() and any("about all clients" in note for note in found.comparison.notes)


@pytest.mark.parametrize(("methods", "known", "why"), REFUSED, ids=[why for *_, why in REFUSED])
def test_bounds_that_do_not_rank_their_methods_are_refused(methods, known, why):
    known = {name: value for name, value in known.items() if name != "I"}
    with pytest.raises(FedboundsError, match=why):
        map_methods(methods, ("I", [2, 20]), ("sigma", [0.1, 1]), known)


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        (("I", [2]), ("d", [1, 2]), "at least two values of I, got 1"),
        (("d", [1, 2]), ("d", [3, 4]), "d varies; give it once"),
        (("d", [1, 2]), ("gradient_divergence_sup", [3, 4]), "given twice"),
        (("I", [2, 3]), ("sigma", [3, 4]), "sigma varies"),
        (("I", range(1, MOST_CELLS)), ("d", [3, 4]), f"at most {MOST_CELLS} settings"),
    ],
)
def test_axes_that_are_no_two_constants_are_refused(x, y, why):
    with pytest.raises(FedboundsError, match=why):
        map_methods([MINIBATCH, LOCAL], x, y, {**KNOWN, "sigma": 1, **({} if x[0] == "I" else {"I": 2})})


def test_left_hand_sides_over_other_iterates_are_noted_for_methods_and_refused_for_one_run():
    axes = ("d", [0.1, 1]), {**KNOWN, "I": 2, "sigma": 1}
    with pytest.raises(FedboundsError, match="over rounds against over iterations"):
        compare([MINIBATCH, LOCAL], *axes)
    assert (
        "bound different outputs (over rounds against over iterations)"
        in compare([MINIBATCH, LOCAL], *axes, methods=True).notes[0]
    )


def test_a_limit_is_noted():
    keys = ["gu-2021/mifa", "arbitrary-participation/table-1-gu"]
    found = map_methods(keys, ("E", [1, 9]), ("sigma", [1, 2]), dict(N=10, T=100, I=1))
    assert "gu-2021/mifa [printed] holds only in the limit T -> infinity" in found.comparison.notes
    assert found.advantage == pytest.approx(1)
