"""Claims of Wang & Ji (2024) that fail, each with a counterexample in exact arithmetic and what holds instead."""

from fedbounds.bounds.audit.errata import Evidence, read_errata
from fedbounds.bounds.papers.fedau import errata_descent as descent
from fedbounds.bounds.papers.fedau import errata_experiments as experiments
from fedbounds.bounds.papers.fedau import errata_weights as weights
from fedbounds.bounds.papers.fedau.assumptions import BERNOULLI, FEDAU, OBJECTIVE_WEIGHTS, ONE_STEP
from fedbounds.bounds.papers.fedau.lemmas import GLOBAL_CAP, LOCAL_CAP
from fedbounds.bounds.papers.fedau.results import TWO_ROUNDS

ONE_ROUND = (*ONE_STEP, OBJECTIVE_WEIGHTS, LOCAL_CAP, GLOBAL_CAP)  # of Lemma B.3.3

EVIDENCE = {
    "dropped-cross-term": Evidence(descent.dropped_cross_term, ONE_ROUND),
    "descent-lemma": Evidence(descent.descent_lemma, ONE_ROUND),
    "halved-initial-gap": Evidence(descent.halved_initial_gap, ("B.4.3", "h*")),
    "mean-of-a-random-number-of-intervals": Evidence(weights.mean_of_random_count, FEDAU),
    "variance-of-a-random-number-of-intervals": Evidence(weights.variance_of_random_count, FEDAU),
    "cut-off-is-not-a-whole-number": Evidence(weights.cut_off_below_one, (BERNOULLI, TWO_ROUNDS)),
    "rarity-without-a-floor": Evidence(weights.rarity_without_a_floor, (*FEDAU, TWO_ROUNDS)),
    "random-second-moment": Evidence(weights.random_second_moment, FEDAU),
    "rounds-per-participation": Evidence(weights.rounds_per_participation, ("record",), weights.last_round_counts),
    "rate-above-one": Evidence(experiments.rate_above_one, ("C.6.1",), experiments.capped_rates),
    "spread-over-clients": Evidence(
        experiments.spread_of_test_accuracy, ("Table D.3.1",), experiments.spread_with_cut_off
    ),
    "rare-participation": Evidence(
        experiments.mifa_at_mean_rate_one_tenth, ("Table D.6.1",), experiments.fedau_first_at_mean_rate_one_tenth
    ),
}
ARGUMENTS = {
    "option-1-is-vacuous-for-fedau": weights.nobody_comes,
    "sampling-without-replacement": experiments.sampling_variance,
    "cyclic-start-of-the-public-code": experiments.cyclic_starts,
    "fixed-cut-off-is-biased": weights.fixed_cut_off,
}
ERRATA, SUPPLEMENTS, WORDING = read_errata(__file__, EVIDENCE, ARGUMENTS)
