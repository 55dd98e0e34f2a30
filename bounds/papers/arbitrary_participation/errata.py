"""Claims of Wang & Ji (2022) that fail, each with a counterexample in exact arithmetic and what holds instead."""

from fedbounds.bounds.audit.errata import Evidence, read_errata
from fedbounds.bounds.papers.arbitrary_participation import errata_noise as noise
from fedbounds.bounds.papers.arbitrary_participation import errata_rates as rates
from fedbounds.bounds.papers.arbitrary_participation import errata_windows as windows
from fedbounds.bounds.papers.arbitrary_participation.assumptions import (
    BOUNDED_BELOW,
    BOUNDED_DIVERGENCE,
    COHORT,
    ERGODIC,
    INDEPENDENT_ROUNDS,
    MIXING,
    NORM,
    PARTICIPATION,
    UNBIASED_SAMPLING,
    WEIGHTS,
    WINDOW,
)
from fedbounds.bounds.theory.assumptions import SMOOTH, UNBIASED

STATED = (SMOOTH, UNBIASED, PARTICIPATION, COHORT, WINDOW, WEIGHTS, NORM, BOUNDED_BELOW, *noise.CAPS)  # of Theorem 3.1
INDEPENDENT = (BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, INDEPENDENT_ROUNDS, WEIGHTS)
STRONGLY_MIXING = (BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, MIXING, WEIGHTS)
SAMPLED = (UNBIASED_SAMPLING, INDEPENDENT_ROUNDS, WEIGHTS)

EVIDENCE = {
    "suprema-at-different-rounds": Evidence(windows.suprema_at_different_rounds, (BOUNDED_DIVERGENCE, WEIGHTS)),
    "per-client-is-not-all-clients": Evidence(windows.per_client_is_not_all_clients, (*SAMPLED, "0 < c < 1")),
    "one-window-is-not-all-windows": Evidence(windows.one_window_is_not_all_windows, INDEPENDENT),
    "chebyshev-for-one-window": Evidence(windows.chebyshev_for_one_window, STRONGLY_MIXING),
    "vanishing-long-run-variance": Evidence(windows.vanishing_long_run_variance, STRONGLY_MIXING),
    "ergodic-but-not-uniformly": Evidence(
        windows.ergodic_but_not_uniformly, (BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, ERGODIC, WEIGHTS)
    ),
    "lost-weight-variance": Evidence(rates.lost_weight_variance, (*SAMPLED, NORM, BOUNDED_DIVERGENCE, "0 < c < 1")),
    "step-size-with-a-unit": Evidence(rates.step_size_with_a_unit, (NORM, "T >= 4LIP^2F/rho^2", "P <= T/2")),
    "interval-is-not-a-whole-number": Evidence(
        rates.interval_is_not_a_whole_number,
        (*SAMPLED, NORM, "I <= rho/(2 upsilon^2 N^(5/2) sqrt(LF))", "T >= 4 upsilon^4 I N^5"),
    ),
    "earlier-rounds-in-lemma-c.2": Evidence(
        noise.earlier_rounds_in_lemma_c2, (NORM, noise.CAPS[0]), noise.lemma_c2_has_slack
    ),
    "noise-with-memory": Evidence(noise.noise_with_memory, STATED),
}
ARGUMENTS = {
    "independent-noise-is-needed": lambda: noise.shared_noise().argument("All its other hypotheses hold here."),
    "exogenous-participation-is-needed": lambda: noise.participation_follows_the_noise().argument(
        "All its other hypotheses hold here."
    ),
    "variance-at-a-finite-window": windows.finite_window_against_its_limit,
    "smaller-of-two-tails": rates.smaller_of_two_tails,
    "cap-free-of-rounds": rates.cap_free_of_rounds,
    "speed-up-ends-at-the-cap": rates.speed_up_ends_at_the_cap,
    "toy-cycle-rests-near": noise.toy_center_is_near,
    "one-window-of-three-clients": windows.three_clients_each_independent,
    "ergodic-limit": windows.ergodic_from_a_fixed_start,
}
ERRATA, SUPPLEMENTS, WORDING = read_errata(__file__, EVIDENCE, ARGUMENTS)
