"""Comparisons of means over seeds against scipy and against numbers computed by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from fedbounds.figures.charts.claims import (
    FigureClaim,
    correct,
    levels_by_name,
    write_claims,
)
from fedbounds.figures.charts.significance import (
    LEVEL,
    DivergenceTest,
    Level,
    PartialFinding,
    SignTest,
    all_agree,
    any_agrees,
    decide,
    deciding,
    holm,
    is_above_zero,
)
from fedbounds.figures.charts.significance import tests_in as comparisons
from fedbounds.figures.charts.verdicts import COLUMNS

RNG = np.random.default_rng(0)
ONE, OTHER = RNG.normal(1.0, 1.0, 6), RNG.normal(0.5, 2.0, 6)


def planted(p, seeds=5, mean=1.0):
    """One number for each seed, whose mean differs from zero with a two-sided p-value as given."""
    shape = np.arange(seeds) - (seeds - 1) / 2
    t = stats.t.isf(p / 2, seeds - 1)
    return mean + shape / shape.std(ddof=1) * seeds**0.5 * abs(mean) / t


def test_differences_by_seed_are_scipys_paired_t_test():
    test = Level.from_values(ONE).above(Level.from_values(OTHER))
    found = stats.ttest_rel(ONE, OTHER)
    assert test.kind == "paired t" and test.p == pytest.approx(found.pvalue, rel=1e-12)
    assert test.gap.interval() == pytest.approx(tuple(found.confidence_interval()), rel=1e-12)
    assert test.key == Level.from_values(OTHER).above(Level.from_values(ONE)).key  # the same comparison


@pytest.mark.parametrize("other", [OTHER, OTHER[:4]])
def test_without_the_values_of_the_seeds_it_is_scipys_welch_test(other):
    one, two = (replace(Level.from_values(values), values=()) for values in (ONE, other))
    test, found = one.above(two), stats.ttest_ind(ONE, other, equal_var=False)
    assert test.kind == "Welch's t, unpaired" and test.p == pytest.approx(found.pvalue, rel=1e-9)
    assert test.gap.interval() == pytest.approx(tuple(found.confidence_interval()), rel=1e-9)


def test_other_seeds_are_never_paired():
    one, two = Level.from_values(ONE, ids=range(6)), Level.from_values(OTHER, ids=range(1000, 1006))
    assert one.above(two).p == pytest.approx(stats.ttest_ind(ONE, OTHER, equal_var=False).pvalue, rel=1e-9)
    assert one.above(replace(two, ids=one.ids)).kind == "paired t"


@pytest.mark.parametrize("shift", [0.0, 0.9, 1.5])
def test_a_tolerance_is_two_one_sided_tests(shift):
    values = 0.2 * ONE + shift
    gap, test = values - values.mean() + shift, None
    test = Level.from_values(gap).near(Level(0.0, 0.0, 6, degrees=np.inf), 1.0)
    low, high = (stats.ttest_1samp(gap, at, alternative=way).pvalue for at, way in ((-1.0, "greater"), (1.0, "less")))
    beyond = stats.ttest_1samp(gap, 1.0, alternative="greater").pvalue  # of the other border nothing is left
    assert test.p == pytest.approx(min(max(low, high), beyond), rel=1e-3) and test.claimed is (shift < 1)


def test_about_equal_is_within_a_tenth_of_the_smaller_seed_by_seed():
    one, other = 10 + 0.1 * ONE, 10.3 + 0.1 * OTHER
    margins = 1.1 * one - other, 1.1 * other - one
    expected = max(stats.ttest_1samp(margin, 0, alternative="greater").pvalue for margin in margins)
    assert Level.from_values(one).alike(Level.from_values(other)).p == pytest.approx(expected, rel=1e-9)
    assert decide(Level.from_values(one).alike(Level.from_values(1.2 * one))).agrees is False


def test_holms_correction_is_that_of_a_known_example():
    """p = 0.01, 0.04, 0.03, 0.005: times 4, 3, 2, 1 in ascending order, never below a smaller one's."""
    tests = [is_above_zero(Level.from_values(planted(p, 5, 1 + k))) for k, p in enumerate((0.01, 0.04, 0.03, 0.005))]
    found = holm(tests)
    assert [found[test.key].p for test in tests] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [found[test.key].level for test in tests] == pytest.approx([LEVEL / 3, LEVEL, LEVEL / 2, LEVEL / 4])
    reversed_ = is_above_zero(Level.from_values(-planted(0.01, 5, 1)))
    assert len(holm([*tests, *tests, reversed_])) == 4  # a comparison counts once


@pytest.mark.parametrize(("seeds", "p"), [(5, 0.116), (2, 0.295)])
def test_two_standard_errors_of_a_few_seeds_decide_nothing(seeds, p):
    values = planted(p, seeds)
    assert values.mean() / (values.std(ddof=1) / seeds**0.5) > 2 - 0.01
    claim = FigureClaim("Figure 1", "", "", is_above_zero(Level.from_values(values)))
    assert claim.verdict == "inconclusive" and claim.note.endswith("seeds would tell")


@pytest.mark.parametrize("seeds", [2, 3, 5, 20])
def test_a_decision_is_the_p_values_and_turns_with_the_direction(seeds):
    for p, decided in ((0.049, True), (0.051, False)):
        values = planted(p, seeds)
        assert is_above_zero(Level.from_values(values)).p == pytest.approx(p)
        assert decide(is_above_zero(Level.from_values(values))).agrees is (True if decided else None)
        assert decide(is_above_zero(Level.from_values(-values))).agrees is None  # the opposite needs power, too
    clear = Level.from_values(planted(1e-3, seeds))
    assert decide(is_above_zero(clear.times(-1))).agrees is False
    assert decide(clear.below(Level.from_values(0 * np.arange(seeds)))).agrees is False


def test_a_border_is_compared_seed_by_seed():
    level_, border = Level.from_values(ONE), Level(0.5, 0.0, 1, name="border", degrees=np.inf)
    for test, values in ((level_.above(border), ONE - 0.5), (level_.below(border), 0.5 - ONE)):
        assert not test.unpaired and test.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-9)


def test_more_claims_of_a_figure_ask_for_more_and_other_figures_do_not():
    clear = FigureClaim("Figure 1", "", "", is_above_zero(Level.from_values(planted(0.02))))
    others = [FigureClaim("Figure 1", "", "", is_above_zero(Level.from_values(planted(0.5, 5, k)))) for k in (2, 3)]
    assert clear.verdict == "reproduced" and correct([clear, *others])[0].verdict == "inconclusive"
    assert correct([clear, *(replace(one, source="Figure 2") for one in others)])[0].verdict == "reproduced"
    assert "Holm, 3 comparisons" in correct([clear, *others])[0].comparisons


@pytest.mark.parametrize(("seeds", "p"), [(5, 0.2), (5, 0.116), (20, 0.3)])
def test_the_seeds_that_would_tell_have_power_at_the_corrected_level(seeds, p):
    values = planted(p, seeds)
    for found in (decide(is_above_zero(Level.from_values(values))), decide(is_above_zero(Level.from_values(-values)))):
        effect, level_ = values.mean() / values.std(ddof=1), LEVEL

        def power(n, effect=effect, level_=level_):
            border = stats.t.isf(level_ / 2, n - 1)
            return stats.nct.sf(border, n - 1, effect * n**0.5)

        n = int(found.seeds_needed)
        assert power(n) >= 0.8 > power(n - 1)
    alone = decide(is_above_zero(Level.from_values(values))).seeds_needed
    more = [is_above_zero(Level.from_values(planted(0.9, seeds, k))) for k in (2, 3, 4)]
    family = holm([is_above_zero(Level.from_values(values)), *more])
    assert decide(is_above_zero(Level.from_values(values)), family).seeds_needed > alone


def test_no_feasible_number_of_seeds_tells_equal_means():
    same = Level.from_values(np.array([1.0, 2.0]))
    assert decide(same.above(same)).power == "no feasible number of seeds would tell"
    single = Level.from_values(np.ones(1))
    assert single.above(same) is None and single.near(same, 1.0) is None and single.alike(same) is None


def test_a_side_that_diverged_is_compared_by_fishers_test_unless_both_diverged():
    there = Level.from_values(np.linspace(0, 1, 6))
    for diverged in range(1, 7):
        lost = Level.from_values(np.where(np.arange(6) < diverged, np.nan, 0.1), "b")
        found = [
            *(there.below(lost), there.above(lost), there.alike(lost), there.near(lost, 1.0)),
            *(lost.above(there), lost.below(there), lost.times(2).above(there)),
        ]
        p = stats.fisher_exact([[diverged, 6 - diverged], [0, 6]]).pvalue
        assert [one.p for one in found] == pytest.approx([p] * 7)
        shown, opposite = (True if diverged >= 5 else None), (False if diverged == 6 else None)  # 5 of 6: power 0.74
        agrees = [shown, opposite, opposite, opposite, shown, opposite, shown]
        assert [decide(one).agrees for one in found] == agrees
        assert lost.below(lost) is None and lost.alike(lost) is None
    few = DivergenceTest("b", 1, 2, 2, True)

    def power(n):  # for n seeds on either side, of which half diverge on one
        decided = [k for k in range(n + 1) if stats.fisher_exact([[k, n - k], [0, n]]).pvalue <= LEVEL]
        return stats.binom.pmf(decided, n, 0.5).sum()

    needed = next(n for n in range(2, 99) if power(n) >= 0.8)
    assert few.seeds_needed(LEVEL) == needed and decide(few).power == f"about {needed} seeds would tell"


def test_without_parts_nothing_is_decided():
    assert decide(all_agree([])).agrees is None and decide(any_agrees([])).agrees is None


def test_seeds_where_something_holds_are_counted_by_the_binomial_test():
    for held in (1, 8, 15, 20):
        test = SignTest(held, 20, "it")
        assert test.p == pytest.approx(stats.binomtest(held, 20).pvalue) and test.claimed is (held > 10)
    assert decide(SignTest(5, 5, "it")).agrees is None and decide(SignTest(0, 6, "it")).agrees is False
    assert decide(SignTest(0, 0, "it")).power == "no feasible number of seeds would tell"
    assert SignTest(3, 3, "it").seeds_needed(LEVEL) == 6 and SignTest(2, 2, "it").seeds_needed(LEVEL / 4) == 8
    for held, seeds in ((6, 8), (7, 10)):
        needed = int(SignTest(held, seeds, "it").seeds_needed(LEVEL))
        border = next(k for k in range(needed) if stats.binomtest(needed - k, needed).pvalue > LEVEL)
        assert stats.binom.sf(needed - border, needed, held / seeds) >= 0.8


def test_parts_are_decided_by_their_share():
    yes, no, open_ = (
        is_above_zero(Level(1.0, 0.01, 5)),
        is_above_zero(Level(-1.0, 0.01, 5)),
        is_above_zero(Level(1.0, 0.9, 5)),
    )
    assert [decide(all_agree(parts)).agrees for parts in ((yes, yes), (yes, open_), (open_, no))] == [True, None, False]
    assert [decide(any_agrees(parts)).agrees for parts in ((no, yes), (no, open_), (no, no))] == [True, None, False]
    most = [
        decide(PartialFinding(parts, 0.75)).agrees
        for parts in ((yes, yes, yes, no), (yes, yes, no, open_), (no, no, yes))
    ]
    assert most == [True, None, False]
    wide = is_above_zero(Level(1.0, 5.0, 5))
    alone = [decide(one).seeds_needed for one in (open_, wide)]
    assert alone[0] < alone[1] and decide(all_agree([open_, wide])).seeds_needed >= alone[1]
    away = is_above_zero(Level(-1.1, 0.9, 5))
    seeds = {test: test.seeds_needed(LEVEL / 3) for test in (open_, away, wide)}  # the first decides each
    assert (
        decide(any_agrees([away, wide])).seeds_needed > seeds[away] and decide(all_agree([away, wide])).towards is False
    )
    assert decide(all_agree([away, wide, open_])).seeds_needed <= seeds[away]
    assert decide(all_agree([wide, None])).power == ""  # no seeds decide what has no test


def test_the_deciding_comparisons_are_those_with_the_decision():
    yes, also, no, open_ = (
        is_above_zero(Level(mean, 0.01 if mean != 3 else 2.9, 5, name=f"{mean}")) for mean in (1.0, 2.0, -1.0, 3.0)
    )

    def found(part):
        return deciding(part, holm(comparisons(part)))

    assert found(all_agree([yes, no, open_])) == [no] and found(all_agree([yes, also])) == [yes, also]
    assert found(any_agrees([yes, no, open_])) == [yes] and found(any_agrees([no, open_])) == [no, open_]
    assert found(all_agree([yes, open_])) == [yes, open_]  # undecided: all
    assert found(PartialFinding((yes, also, no), 0.5)) == [yes, also] and found(yes) == [yes] and found(True) == []
    assert found(any_agrees([all_agree([yes, no]), all_agree([also, yes])])) == [also, yes]
    assert found(PartialFinding((yes, no), by_means=False)) == [no]
    assert found(PartialFinding((yes, no), by_means=True)) == []  # the means agree
    gone = Level(np.inf, 0.0, 5, name="gone").above(Level(1.0, 0.1, 5, name="here"))
    assert found(all_agree([gone, no])) == [no] and found(any_agrees([gone, no])) == [gone]


def test_the_table_has_the_p_value_of_the_deciding_comparisons():
    close, far = (Level.from_values(planted(p), name) for p, name in ((0.5, "close"), (1e-5, "far")))
    zero = Level.from_values(np.zeros(5), "0")
    claim = FigureClaim("Figure 1", "0 is best", "", all_agree([zero.above(close), zero.above(far)]))
    (row,) = [dict(zip(COLUMNS, one.row, strict=True)) for one in correct([claim])]
    assert row["verdict"] == "not reproduced" and "close" not in row["comparisons"]
    assert float(row["p"]) == pytest.approx(2e-5, rel=0.05)  # of two comparisons


def test_the_table_has_intervals_and_what_the_paper_says(tmp_path):
    found = levels_by_name({"a": ONE, "b": OTHER})
    claims = [
        FigureClaim("Figure 1", "a is better", "numbers", found["a"].above(found["b"]), "Section 1: a is good"),
        FigureClaim("Figure 1", "exact", "", True),
    ]
    text = write_claims(claims, tmp_path / "claims.csv").read_text()
    low, high = stats.ttest_rel(ONE, OTHER).confidence_interval()
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert f"a - b: {ONE.mean() - OTHER.mean():+.3g} [{low:+.3g}, {high:+.3g}], 5 degrees of freedom, p " in text
    assert "(paired t; Holm, 1 comparison)" in text and "Section 1: a is good,a is better" in text
    assert text.splitlines()[2] == "Figure 1,exact,exact,,,reproduced,,,,,,,,"


def test_an_opposite_needs_power_for_a_difference_like_the_measured_one():
    clear, weak = (is_above_zero(Level.from_values(-planted(p))) for p in (0.004, 0.03))
    assert decide(clear).agrees is False and decide(weak).agrees is None and weak.p < LEVEL
    assert decide(is_above_zero(Level.from_values(planted(0.03)))).agrees is True  # the claim itself needs significance
    assert decide(weak).seeds_needed > 5
    first, *rest = (is_above_zero(Level.from_values(-planted(p))) for p in (0.012, 0.013, 0.014))
    assert decide(first).agrees is False  # with power at 5 %, without at the level that Holm's method leaves
    assert holm([first, *rest])[first.key].p < LEVEL and decide(first, holm([first, *rest])).agrees is None
    test = is_above_zero(Level.from_values(planted(0.03)))
    found = replace(test.gap, mean=test.detectable(LEVEL))
    assert stats.nct.sf(stats.t.isf(LEVEL / 2, 4), 4, found.mean / found.error) == pytest.approx(0.8, abs=1e-6)


def test_the_smaller_of_more_corrected_levels_is_never_above_the_next():
    found = list(
        holm([is_above_zero(Level.from_values(planted(p, 4, 1 + p))) for p in (0.2, 0.01, 0.5, 0.03)]).values()
    )
    assert all(one.p <= more.p and one.level < more.level for one, more in pairwise(found))
