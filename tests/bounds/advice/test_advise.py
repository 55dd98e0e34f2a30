"""The adviser: every number of an advice derived a second way, and nothing called a guarantee that is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from fedbounds.bounds.advice.advise import Advice, Advised, _advise_result, advice_for_form, advise
from fedbounds.bounds.advice.coverage import coverage, covers, stated_assumptions
from fedbounds.bounds.advice.request import Presence, Question, concept_of
from fedbounds.bounds.advice.search import Choice, Costs, FormSearch
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.search.optimize import Minimum, optimize
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.search.rounds_answers import Between, Never
from fedbounds.bounds.theory.problem_class import ASKED, NO, ProblemClass
from fedbounds.bounds.theory.registry import load, papers
from fedbounds.bounds.theory.registry import paper as paper_of
from fedbounds.bounds.theory.round_cost import workload_of
from fedbounds.bounds.theory.symbols import Constant

GRADIENT = "squared gradient norm of f"
THEOREM = "arbitrary-participation/theorem-3.1"
PARTIAL = {
    "setting": "non-convex, arbitrary participation, bounded heterogeneity, bounded variance, local steps",
    "target": 0.1,
    "measure": GRADIENT,
    "assume": "all",
    "constants": {
        "smoothness": 1.0, "initial_gap": 5.0, "gradient_noise": 1.0, "cohort_divergence": 2.0,
        "participation_divergence": 0.5, "window_divergence": 0.02, "participating_clients": 10, "interval": 5,
    },
    "choose": {"local_steps": [1, 3]},
    "cost": {"message": 0.5, "gradient": 0.01, "dimension": 1000},
}  # fmt: skip
TIERED = {
    "setting": "tiered, full participation, bounded variance, bounded heterogeneity, non-convex, local steps",
    "target": 0.1,
    "measure": GRADIENT,
    "assume": "all",
    "constants": {
        "smoothness": 1.0, "block_smoothness": 2.0, "initial_gap": 5.0, "noise_of_each_block": [0.6, 0.8],
        "clients_of_each_silo": [4, 5],
    },
    "choose": {"local_steps": [1, 2]},
    "cost": {"message": 2.0, "gradient": 0.01, "dimension": 20000, "batch": 64, "embedding": 32},
}  # fmt: skip
MASKED = {
    "setting": "strongly convex, uniform sampling, compression=unbiased, bounded variance, bounded gradients, "
    "bounded heterogeneity, local steps",
    "target": 0.5,
    "measure": "function gap F - F*",
    "assume": "all",
    "constants": {
        "smoothness": 1.0, "strong_convexity": 0.5, "gradient_noise": 1.0, "stochastic_gradient_bound": 2.0,
        "relative_compression_error": 0.5, "function_heterogeneity": 0.1, "initial_squared_distance": 4.0,
        "clients": 20, "participating_clients": 5,
    },
    "choose": {"local_steps": [1, 2]},
    "cost": {"message": 0.5, "gradient": 0.01, "message_bits": 1064, "dimension": 1000},
}  # fmt: skip
GAME = {
    "setting": "non-convex, strongly concave, uniform sampling, bounded heterogeneity, bounded variance, "
    "different local steps",
    "target": 1.0,
    "measure": "squared gradient norm of the envelope of the weighted objective",
    "assume": "all",
    "constants": {
        "smoothness": 1.0, "strong_concavity": 0.5, "gradient_noise": 1.0, "gradient_noise_growth": 0.0,
        "weighted_heterogeneity": 1.0, "heterogeneity_growth": 1.0, "clients": 10, "participating_clients": 5,
        "fed-norm-sgda": {"w": 0.1, "p": 0.1}, "initial_gap": 2.0, "initial_dual_gap": 1.0,
    },
    "choose": {"local_steps_by_client": [1, 2]},
    "cost": {"round": 1.0, "gradient": 0.1},
}  # fmt: skip
EVERY = {"partial": PARTIAL, "tiered": TIERED, "masked": MASKED, "game": GAME}


def asked(document, **changes) -> Advice:
    return advise(Question.of({**document, **changes}))


def of_one(key: str, question: Question) -> Advised:
    """The advice of one result: what `advise` says of it, without asking the others."""
    return _advise_result(question, load(key), covers(question.setting, paper=load(key).paper), question.measure)


def asked_of(key: str, document, **changes) -> Advised:
    return of_one(key, Question.of({**document, **changes}))


@pytest.fixture(scope="module")
def advices() -> dict[str, Advice]:
    return {name: asked(document) for name, document in EVERY.items()}


def reached(advices) -> list[tuple[Advice, Advised]]:
    return [(a, one) for a in advices.values() for one in a.results if one.status == "reached"]


def numbers(one: Advised) -> dict[str, float | np.ndarray]:
    assert one.evaluation is not None
    return {name: c.value for name, c in there(one).constants.items() if c.source != "derived"}


def spent(one: Advised) -> Costs:
    assert one.costs is not None
    return one.costs


def there(one: Advised) -> Evaluation:
    assert one.evaluation is not None
    return one.evaluation


def counter(one: Advised) -> str:
    return next(q.name for q in load(one.key).notation.values() if q.concept in ("rounds", "iterations"))


def test_all_four_kinds_of_settings_get_advice(advices):
    keys = {name: {one.key for one in a.results if one.status == "reached"} for name, a in advices.items()}
    assert THEOREM in keys["partial"] and "tdcd/theorem-1" in keys["tiered"]
    assert "fedmrn/theorem-1" in keys["masked"] and "fed-norm-sgda/theorem-1" in keys["game"]


def test_at_what_is_advised_the_bound_is_the_target_and_every_condition_holds(advices):
    for advice, one in reached(advices):
        bound = evaluate(one.key, numbers(one), one.coverage.form)
        assert bound.valid and bound.value <= advice.question.target * (1 + 1e-9), one.key
        binding = [c for c in bound.conditions if counter(one) in c.text.split()]
        if not binding and spent(one).rounds > 100:  # else a condition on the rounds decides, or their being whole
            assert bound.value >= 0.98 * advice.question.target, (one.key, bound.value)


def test_with_fewer_rounds_no_step_sizes_reach_the_target(advices):
    for advice, one in reached(advices):
        if spent(one).rounds < 100:
            continue
        T, form = counter(one), load(one.key).form(one.coverage.form)
        free = [
            name for name in one.at if not load(one.key).notation[name].domain.integer and name not in form.prescribes
        ]
        given = {name: value for name, value in numbers(one).items() if name not in (*free, T)}
        fewer = {**given, T: math.floor(0.97 * float(numbers(one)[T]))}
        if not free:
            bound = evaluate(one.key, fewer, form.name, strict=False)
            assert not bound.valid or bound.value > advice.question.target, one.key
            continue
        work = workload_of(load(one.key), form)
        usual = work.usual if work else {}
        within = {name: usual[name](numbers(one)) for name in free if name in usual}
        best = optimize(one.key, fewer, free, within=within, form=form.name)
        assert isinstance(best, Minimum) and best.value > advice.question.target, (one.key, best)


def test_costs_are_the_rounds_times_what_a_round_is_said_to_cost(advices):
    one = advices["partial"].of(THEOREM)
    T, I = spent(one).rounds, one.at["I"]
    assert spent(one).gradients == pytest.approx(T * 10 * I)
    assert spent(one).bits == pytest.approx(T * 10 * 2 * 1000 * 32)
    assert spent(one).seconds == pytest.approx(T * (2 * 0.5 + I * 0.01))
    masked = advices["masked"].of("fedmrn/theorem-1")
    R = math.ceil(float(numbers(masked)["T"]) / masked.at["S"])
    assert (spent(masked).rounds, spent(masked).bits) == (R, R * 5 * (1000 * 32 + 1064))
    game = advices["game"].of("fed-norm-sgda/theorem-1")
    assert spent(game).seconds == pytest.approx(spent(game).rounds * (1.0 + game.at["tau"] * 0.1))
    assert spent(game).gradients == pytest.approx(spent(game).rounds * 5 * game.at["tau"])


def test_the_papers_own_wall_clock_bound_gives_the_target_after_the_advised_time(advices):
    one = advices["tiered"].of("tdcd/theorem-1")
    known = {n: v for n, v in numbers(one).items() if n not in ("R", "K")}
    latency = {"tcomm": 2.0, "tcomp": 0.01, "W": float(spent(one).seconds or 0) * (1 + 1e-12)}
    bound = evaluate("tdcd/wall-clock", {**known, **latency}, one.coverage.form)
    assert float(bound.value) == pytest.approx(float(there(one).value), rel=1e-12)


def test_bits_of_a_round_in_tiers_are_those_that_are_counted_link_by_link(advices):
    from fedbounds.empirical.papers.tdcd.traffic import round_traffic

    one = advices["tiered"].of("tdcd/theorem-1")
    floats = round_traffic([10000, 10000], [4, 5], 64, 32).floats()
    assert spent(one).bits == pytest.approx(spent(one).rounds * 32 * floats)


def test_elasticities_are_those_of_the_symbolic_derivative(advices):
    tried = 0
    for key in (THEOREM, "tdcd/theorem-1", "tdcd/remark-5", "arbitrary-participation/corollary-3.2"):
        advice = advices["partial" if "participation" in key else "tiered"]
        one, result = advice.of(key), load(key)
        bound = result.sympy(one.coverage.form)
        values = {result.notation[n].symbol: float(c.value) for n, c in there(one).constants.items()
                  if not np.ndim(c.value)}  # fmt: skip
        for name, found in one.sensitivity.items():
            symbol = result.notation[name].symbol
            if (
                name in ("Deltainf", "S")
                or symbol not in bound.free_symbols
                or name in ("noise_of_each_block", "sigma")
            ):
                continue
            if any(str(symbol) in map(str, rule.inputs) for rule in result.form(one.coverage.form).derived):
                continue
            slope = float((bound.diff(symbol) * symbol / bound).subs(values).evalf())
            assert found == pytest.approx(slope, rel=1e-5, abs=1e-7), (key, name)
            tried += 1
    assert tried >= 8


def test_noise_of_a_vector_counts_twice_its_share(advices):
    one = advices["tiered"].of("tdcd/theorem-1")
    shares = there(one).shares
    noise = float(shares["gradient noise"] + shares["local drift"])
    assert one.sensitivity["sigma"] == pytest.approx(2 * noise, rel=1e-6)


INTERVALS = (1, 2, 4, 9)


@dataclass
class Falling:
    """Participation whose window divergence falls like 1/sqrt(P)."""

    text: str = "a stub"
    present: float = 10.0
    averaged: bool = False
    checked: dict[str, bool] = field(default_factory=dict)
    implied: frozenset[str] = frozenset()

    def intervals(self, low, high):
        return INTERVALS

    def known(self, paper, interval, given):
        if paper != "arbitrary-participation":
            return Presence()
        values = {"window_divergence": 0.2 / math.sqrt(interval), "participation_divergence": 0.2,
                  "cohort_divergence": 0.2, "participating_clients": 10.0}  # fmt: skip
        exact = {name: Constant(value, "exact", "stub") for name, value in values.items()}
        return Presence(exact, self.checked, self.implied)


FREE = {
    **PARTIAL,
    "constants": {"smoothness": 1.0, "initial_gap": 1.0, "gradient_noise": 1.0},
    "choose": {"local_steps": [1, 3], "server_multiplier": [1, 50]},
}


def test_no_point_of_a_grid_over_steps_local_steps_and_intervals_beats_the_advice():
    question = replace(Question.of(FREE), participation=Falling())
    one = of_one(THEOREM, question)
    assert one.status == "reached" and {"I", "P", "gamma", "eta"} == set(one.at)
    gamma, eta = np.meshgrid(np.geomspace(1e-5, 1, 120), np.geomspace(1, 50, 40))
    beaten = 0
    for I in range(1, 4):
        for P in INTERVALS:
            known = {"L": 1, "F": 1, "sigma": 1, "S": 10, "I": I, "P": P, "nu": 0.2, "beta": 0.2,
                     "delta": 0.2 / math.sqrt(P), "gamma": gamma.ravel(), "eta": eta.ravel()}  # fmt: skip
            within = [math.floor(share * float(spent(one).seconds or 0) / (1.0 + 0.01 * I)) for share in (0.99, 1.15)]
            less, more = (evaluate(THEOREM, {**known, "T": T}, one.coverage.form, strict=False) for T in within)
            assert not (less.valid & (less.value <= 0.1)).any(), (I, P)
            beaten += bool((more.valid & (more.value <= 0.1)).any())
    assert beaten  # the grid is fine enough to come near


def counted_searches(monkeypatch, question: Question, key: str) -> tuple[Advised, list[dict[str, int]]]:
    """The advice of one result, and the whole numbers at which the least rounds were searched."""
    searched: list[dict[str, int]] = []
    search = FormSearch._solve

    def solve(self: FormSearch, whole: dict[str, int]) -> Choice:
        searched.append(whole)
        return search(self, whole)

    monkeypatch.setattr(FormSearch, "_solve", solve)
    return of_one(key, question), searched


def test_only_the_cheapest_estimates_are_searched_and_none_of_the_others_is_cheaper(monkeypatch):
    question = replace(Question.of(FREE), participation=Falling())
    one, searched = counted_searches(monkeypatch, question, THEOREM)
    assert len(searched) <= 2 and one.choice is not None and one.choice.whole in searched
    ranges = [{**question.choose, "local_steps": (I, I)} for I in range(1, 4)]
    every = [of_one(THEOREM, replace(question, choose=choose)) for choose in ranges]
    best = min(float(spent(other).seconds or 0) for other in every)
    assert best * (1 - 1e-9) <= float(spent(one).seconds or 0) <= 1.01 * best
    assert [choice.whole["I"] for choice in one.curve] == [1, 2, 3]
    for choice, other in zip(one.curve, every, strict=True):
        assert choice.costs is not None and choice.costs.rounds <= 1.01 * spent(other).rounds + 1


def test_a_floor_above_the_target_is_searched_for_one_number_of_local_steps(monkeypatch):
    document = {**PARTIAL, "target": 1e-4, "choose": {"local_steps": [1, 50]}}
    one, searched = counted_searches(monkeypatch, Question.of(document), THEOREM)
    assert one.status == "never" and "window divergence" in one.why
    tried = [whole["I"] for whole in searched]
    assert {*tried} == {1}  # each form once
    at_fifty = asked_of(THEOREM, document, choose={"local_steps": [50, 50]})
    assert at_fifty.status == "never"


@pytest.mark.parametrize(("target", "excluded"), [(1e-4, True), (2e-3, False), (0.1, False)])
def test_all_local_steps_are_excluded_only_below_the_floor(target, excluded):
    result = load(THEOREM)
    question = Question.of({**PARTIAL, "target": target, "choose": {"local_steps": [1, 50]}})
    work = workload_of(result, result.form("sharp"))
    assert work is not None  # 3 delta^2 = 0.0012 stays
    assert FormSearch(question, result, result.form("sharp"), work)._excludes_all_local_steps({"I": 1}) == excluded


RATES = {
    "setting": "non-convex, unknown rates, bounded heterogeneity, bounded variance, bounded gradients, local steps",
    "target": 1.0,
    "measure": GRADIENT,
    "constants": {"L": 1, "initial_gap": 5, "gradient_noise": 1, "gradient_divergence_sup": 1, "gradient_bound": 2,
                  "clients": 2, "participation_rates": 0.3},
    "choose": {"local_steps": [1, 5], "cutoff_interval": [5, 7]},
}  # fmt: skip


def test_conditions_that_no_step_size_enters_are_searched_once_for_all_local_steps(monkeypatch):
    one, searched = counted_searches(monkeypatch, Question.of(RATES), "fedau/theorem-2-option-1")
    assert one.status == "never" and "Wmax" in one.why and not searched
    result = load(one.key)
    known = dict(L=1, F=5, sigma=1, delta=1, p=[0.3, 0.3], I=5, K=7)
    assert isinstance(rounds(result, 1.0, known, optimize=["gamma", "eta"], form=one.coverage.form), Never | Between)


def test_units_of_the_objective_and_of_the_parameters_leave_the_advice_alone():
    for name, key in (("partial", THEOREM), ("tiered", "tdcd/theorem-1"), ("game", "fed-norm-sgda/theorem-1")):
        document, result, scale = EVERY[name], load(key), {"f": 64.0, "x": 0.125}
        only = {next(iter(document["choose"])): [2, 2]}

        def scaled(value, dimension, scale=scale):
            factor = math.prod(scale[unit] ** float(power) for unit, power in dimension.exponents)
            return (np.asarray(value) * factor).tolist()

        constants = {
            concept: value if quantity is None else scaled(value, quantity.dimension)
            for concept, value in document["constants"].items()
            for quantity in [result.notation.resolve(concept)]
        }
        before = asked_of(key, document, choose=only)
        target = scaled(document["target"], before.measure.dimension)
        after = asked_of(key, document, constants=constants, target=target, choose=only)
        assert spent(after).rounds == pytest.approx(spent(before).rounds, rel=2e-3)
        for symbol, value in before.at.items():
            if "gamma" in symbol and name != "game":
                assert after.at[symbol] == pytest.approx(scaled(value, result.notation[symbol].dimension), rel=1e-2)
        for symbol, value in before.sensitivity.items():
            assert after.sensitivity[symbol] == pytest.approx(value, abs=2e-3)


@pytest.mark.parametrize("name", ["partial", "tiered"])
def test_nothing_that_rests_on_an_estimated_constant_is_a_guarantee(advices, name):
    document, sure = EVERY[name], {one.key for one in advices[name].results if one.guarantee}
    assert sure  # with all constants given there are guarantees to lose
    symbols = {"clients_of_each_silo", "interval", "participating_clients"}
    constants, changes = document["constants"], {"choose": {"local_steps": [2, 2]}}
    for concept in constants.keys() - symbols:
        known = {c: v for c, v in constants.items() if c != concept}
        for key in sure:
            one = asked_of(key, document, constants=known, estimated={concept: constants[concept]}, **changes)
            used = one.evaluation is not None and any(c.source == "estimated" for c in there(one).constants.values())
            assert used, (concept, key)
            assert not one.guarantee, (concept, key)
    known = {c: v for c, v in constants.items() if c in symbols}
    estimated = {c: v for c, v in constants.items() if c not in symbols}
    found = asked(document, constants=known, estimated=estimated, **changes)
    assert not any(one.guarantee for one in found.results)


def test_without_a_word_for_its_assumptions_nothing_is_a_guarantee():
    found = asked(PARTIAL, assume=[], choose={"local_steps": [2, 2]})
    assert not any(one.guarantee for one in found.results)
    assert any("neither checked nor assumed" in why for why in found.of(THEOREM).why_not)


def test_a_setting_that_leaves_something_open_gives_no_guarantee():
    open_ = PARTIAL["setting"].replace(", bounded heterogeneity", "")
    one = asked(PARTIAL, setting=open_, choose={"local_steps": [2, 2]}).of(THEOREM)
    assert one.status == "reached" and not one.guarantee
    assert any("only if heterogeneity" in why for why in one.why_not)


@pytest.mark.parametrize("name", EVERY)
def test_leaving_a_premise_unsaid_revokes_exactly_the_guarantees_that_need_it(advices, name):
    """Against what each form declares, property by property of what was said; the assumptions are granted."""
    setting, sure = EVERY[name]["setting"], [one for one in advices[name].results if one.guarantee]
    assert sure
    needing = []  # of each phrase one number is asked for, and of the others what their rows say
    for phrase in setting.split(", "):
        rest = ", ".join(p for p in setting.split(", ") if p != phrase)
        for one in sure:
            result = load(one.key)
            form = result.form(one.coverage.form)
            scope = paper_of(result.paper).scope
            covers_ = [a.cover or ASKED for a in stated_assumptions(result, form, scope)]
            needs = any(
                cover.level(ProblemClass.of(rest)) == NO < cover.level(ProblemClass.of(setting)) for cover in covers_
            )
            row = coverage(result, form, scope, ProblemClass.of(rest))
            assert row.answer in (("if", "not covered") if needs else ("covered",)), (one.key, phrase)
            if row.answer == "if" and phrase not in needing:
                needing.append(phrase)
                question = Question.of({**EVERY[name], "setting": rest})
                found = advice_for_form(replace(question, choose={**question.choose, **fixed(one)}), result, row)
                assert found.status == "reached" and not found.guarantee, (one.key, phrase)
                assert any("covers the setting only if" in why for why in found.why_not)
    assert needing


def fixed(one: Advised) -> dict[str, tuple[float, float]]:
    """The first whole number of a choice, and no other."""
    notation = load(one.key).notation
    return {notation[n].concept: (v, v) for n, v in one.at.items() if notation[n].domain.integer}


def test_a_property_that_a_result_assumes_nothing_of_may_stay_unsaid(advices):
    one = advices["tiered"].of("tdcd/theorem-1")
    assert "gradients" in advices["tiered"].question.setting.unsaid and one.guarantee and not one.coverage.only_if
    assert "assumes something of what was not said, its number is no guarantee" in advices["tiered"].headline


@pytest.mark.parametrize("word", ["unbounded heterogeneity", "heavy tailed noise", "biased compression", "non-smooth"])
def test_a_premise_that_is_turned_around_excludes_the_result_with_its_reason(word):
    kind = {"unbounded heterogeneity": "bounded heterogeneity", "heavy tailed noise": "bounded variance"}.get(word)
    setting = PARTIAL["setting"].replace(kind, word) if kind else f"{PARTIAL['setting']}, {word}"
    found = asked(PARTIAL, setting=setting, choose={"local_steps": [2, 2]})
    assert THEOREM in {row.key for row in found.excluded}
    with pytest.raises(FedboundsError, match=r"does not cover the setting: excluded by .+"):
        found.of(THEOREM)


def test_participation_that_breaks_a_premise_gives_no_number():
    broken = replace(Question.of(FREE), participation=Falling(checked={"weights": False}))
    one = advise(broken, paper="arbitrary-participation").of(THEOREM)
    assert (one.status, one.why, one.guarantee) == ("never", "participation violates weights", False)


def test_a_target_for_the_norm_is_the_square_of_it_and_other_measures_are_named():
    norm = asked(TIERED, measure="gradient norm of f", target=math.sqrt(0.1), choose={"local_steps": [1, 1]})
    assert norm.question.target == pytest.approx(0.1)
    found = asked(MASKED, choose={"local_steps": [1, 1]})
    other = {one.key: one.why for one in found.results if one.status == "another measure"}
    assert other.get("fedmrn/theorem-2") == "it bounds the squared gradient norm of f"
    with pytest.raises(FedboundsError, match=r"measure is missing.*function gap F - F\*"):
        asked(MASKED, measure="")


def test_what_is_missing_is_named_with_its_meaning_and_what_holds_without_it():
    known = {c: v for c, v in PARTIAL["constants"].items() if c != "gradient_noise"}
    found = asked_of(THEOREM, PARTIAL, constants=known, choose={"local_steps": [2, 2]})
    full = asked_of(THEOREM, PARTIAL, choose={"local_steps": [2, 2]})
    assert found.best_case is not None and found.best_case.costs is not None
    best_case = found.best_case.costs
    assert found.missing == {"sigma": "gradient noise (root of its variance) (gradient_noise)"}
    assert not found.guarantee and best_case.rounds < spent(full).rounds
    quiet = {**known, "gradient_noise": 0}
    without_noise = asked_of(THEOREM, PARTIAL, constants=quiet, choose={"local_steps": [2, 2]})
    assert best_case.rounds == spent(without_noise).rounds


def test_what_would_do_in_place_of_a_missing_constant_is_named():
    known = {c: v for c, v in TIERED["constants"].items() if c != "initial_gap"}
    found = asked(TIERED, constants=known, choose={"local_steps": [1, 1]}).of("tdcd/theorem-1")
    assert found.missing["Delta"].endswith("(decrease_of_the_objective); it follows from initial_gap too")


def test_a_usual_range_that_alone_stops_a_step_size_is_said_in_the_note(advices):
    for _, one in reached(advices):
        stopped = any(text in ("eta <= 100", "eta >= 1") for text in one.active)
        if "arbitrary-participation" in one.key:
            assert stopped == ("nothing but the usual range stops eta" in one.note), one.key
    assert "usual range stops eta" in advices["partial"].of(THEOREM).note
    wider = asked(PARTIAL, choose={"local_steps": [2, 2], "server_multiplier": [1, 50]}).of(THEOREM)
    assert "eta <= 50" in wider.active and "usual range" not in wider.note


def test_no_refuted_form_is_advised_and_orders_are_marked_and_never_first(advices):
    for advice, one in reached(advices):
        assert not load(one.key).form(one.coverage.form).refuted_by
        assert not (one.guarantee and load(one.key).form(one.coverage.form).order_only)
        for _, rows in advice.groups:
            marks = [(row.coverage.mark != "", row.coverage.mark in ("order only", "refuted")) for row in rows]
            assert marks == sorted(marks)


def test_results_are_ranked_only_beside_those_that_bound_the_same(advices):
    for advice in advices.values():
        for measure, rows in advice.groups:
            assert {str(row.measure) for row in rows} == {str(measure)}
        assert len(advice.relations) == len(advice.groups) * (len(advice.groups) - 1) // 2


def test_what_a_target_never_reaches_is_said_with_the_floor():
    one = asked(PARTIAL, target=1e-4, choose={"local_steps": [2, 2]}).of(THEOREM)
    assert one.status == "never" and "window divergence" in one.why


def test_every_form_about_a_run_has_a_workload_in_its_own_symbols():
    for paper in papers():
        for result in paper.results:
            for form in result.forms:
                work = workload_of(result, form)
                assert work is not None
                for name in (work.local_steps, *work.steps, *work.whole, *work.usual):
                    assert name in result.notation
                assert {*work.usual} <= {*work.steps} and result.notation[work.local_steps].domain.integer


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": 0}, "target = 0 must be positive"),
        ({"target": None}, "target = None is not a number"),
        ({"target": "abc"}, "unknown name in target 'abc': write a number"),
        ({"traget": 1}, "unknown entry of a setting 'traget'; did you mean target"),
        ({"setting": "non-konvex"}, "unknown property of a setting"),
        ({"measure": "loss"}, "unknown measure of a result that covers the setting 'loss'"),
        ({"constants": {"P": 3}}, "P is interval in arbitrary-participation, participating_clients in"),
        ({"constants": {"smothness": 3}}, "unknown constant 'smothness'; did you mean smoothness"),
        ({"constants": {"fedau": {"zeta": 3}}}, "unknown constant of fedau"),
        ({"cost": {"round": 1, "message": 1}}, "round stands in place of"),
        ({"cost": {"gradient": -1}}, "gradient = -1 must be positive"),
        ({"cost": {"dimension": 1.5}}, "dimension = 1.5 must be an integer"),
        ({"choose": {"local_steps": [5, 1]}}, "is empty; it reads"),
        ({"choose": {"local_steps": 5}}, "must be two numbers"),
        ({"minimize": "time"}, "unknown goal to minimize 'time'"),
    ],
)
def test_a_bad_entry_is_one_line_that_says_what_would_be_right(change, said):
    with pytest.raises(FedboundsError) as error:
        asked(PARTIAL, **change)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_symbol_stands_for_what_all_papers_mean_by_it():
    assert concept_of("L") == concept_of("Lf") == "smoothness"
    by_symbol = asked_of("tdcd/theorem-1", TIERED, choose={"local_steps": [1, 1]}, constants={
        "L": 1.0, "tdcd": {"Lmax": 2.0, "Deltainf": 5.0, "sigma": [0.6, 0.8], "K": [4, 5]}})  # fmt: skip
    assert by_symbol.costs == asked_of("tdcd/theorem-1", TIERED, choose={"local_steps": [1, 1]}).costs


def test_one_number_for_all_clients_has_an_elasticity_as_the_list_of_them_has():
    rates = {**RATES, "choose": {"local_steps": [1, 1]}}
    listed = {**rates["constants"], "participation_rates": [0.3, 0.3]}
    questions = [Question.of({**rates, "constants": c}) for c in (rates["constants"], listed)]
    row = covers(questions[0].setting, paper="fedau").of("fedau/corollary-4", "sharp")
    one, other = (advice_for_form(question, load(row.key), row) for question in questions)
    assert one.sensitivity["p"] == pytest.approx(other.sensitivity["p"], rel=1e-9)
