"""Claims of Sharma et al. (2023) that fail, each with a counterexample in exact arithmetic and what holds instead."""

from fedbounds.bounds.audit.errata import Evidence, read_errata
from fedbounds.bounds.papers.fed_norm_sgda import errata_algorithm as algorithm
from fedbounds.bounds.papers.fed_norm_sgda import errata_blocks as blocks
from fedbounds.bounds.papers.fed_norm_sgda import errata_concave as concave
from fedbounds.bounds.papers.fed_norm_sgda import errata_descent as descent
from fedbounds.bounds.papers.fed_norm_sgda import errata_envelope as envelope
from fedbounds.bounds.papers.fed_norm_sgda import errata_noise as noise
from fedbounds.bounds.papers.fed_norm_sgda import errata_rates as rates
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import (
    BLOCK_NOISE,
    CONCAVE_PRINTED,
    HETEROGENEITY,
    JOINTLY_SMOOTH,
    LOCAL_MAP,
    NOISE,
    PRINTED,
    SAMPLING,
    STRONGLY_CONCAVE,
)
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_1, LEMMA_C_2, LEMMA_C_4
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE

THEOREM_1 = (*PRINTED, *descent.PRINTED_CONDITIONS)  # as printed
ONE_ROUND = (*PRINTED, MARTINGALE, INDEPENDENT_CLIENTS)
STEPS_OF_LEMMA_B_5 = ("(a)", "(b)", "(c)", "(d)", "(e)", "(f)")

EVIDENCE = {
    "rounds-beyond-the-cap": Evidence(
        rates.rounds_of_theorem_4,
        (rates.SAMPLES, rates.ASCENT_CAP, rates.SECOND_CAP, rates.POSITIVE, rates.TARGET),
        rates.epsilon_to_the_sixth,
    ),
    "steps-beyond-the-cap": Evidence(
        rates.printed_steps, (rates.FULL, rates.LESS_WORK, rates.MUCH_WORK), rates.capped_steps
    ),
    "lost-initial-dual-gap": Evidence(descent.lost_dual_gap, THEOREM_1),
    "step-in-x-without-a-floor": Evidence(descent.step_in_x_without_a_floor, THEOREM_1, descent.step_in_x_with_a_floor),
    "smoothness-of-the-envelope": Evidence(
        envelope.envelope_smoothness, (JOINTLY_SMOOTH, STRONGLY_CONCAVE), envelope.envelope_is_smooth
    ),
    "cross-term-of-local-noise": Evidence(noise.cross_term, (*ONE_ROUND, BLOCK_NOISE), noise.doubled_squares),
    "noise-of-one-block-in-lemma-c.1": Evidence(blocks.one_block_in_c_1, LEMMA_C_1.form("printed").assumptions),
    "noise-of-one-block-in-lemma-c.2": Evidence(blocks.one_block_in_c_2, LEMMA_C_2.form("printed").assumptions),
    "noise-of-one-block-in-lemma-c.4": Evidence(blocks.one_block_in_c_4, LEMMA_C_4.form("printed").assumptions),
    "descent-with-too-smooth-an-envelope": Evidence(
        envelope.descent_at_the_saddle_of_the_envelope, (*ONE_ROUND, BLOCK_NOISE)
    ),
    "descent-without-the-cross-term": Evidence(noise.descent_at_the_saddle, (*ONE_ROUND, BLOCK_NOISE)),
    "shared-noise-of-descent-and-ascent": Evidence(
        noise.shared_noise,
        (*ONE_ROUND, BLOCK_NOISE, "(a)", "(b)", "(c)", "(d), (e), (f)"),
        noise.ascent_at_the_old_point,
    ),
    "noise-bounded-as-a-whole": Evidence(noise.noise_of_one_block, ONE_ROUND, noise.block_by_block),
    "radius-of-the-iterates-only": Evidence(
        concave.bound_on_the_iterates_only, concave.HYPOTHESES, concave.bound_on_the_maximizer_too
    ),
    "factor-of-corollary-2.1": Evidence(
        envelope.moreau_gap, (*CONCAVE_PRINTED, envelope.WEIGHTS), envelope.moreau_triangle
    ),
    "uneven-local-coefficients": Evidence(
        descent.uneven_steps,
        (JOINTLY_SMOOTH, NOISE, HETEROGENEITY, STRONGLY_CONCAVE, SAMPLING, LOCAL_MAP, *STEPS_OF_LEMMA_B_5),
        descent.controlled_coefficient,
    ),
    "shrinking-local-coefficients": Evidence(
        descent.shrinking_coefficients, descent.REMARK_7, descent.growing_coefficients
    ),
    "rounds-of-a-sample": Evidence(
        rates.rounds_of_a_sample,
        ("equal weights and local steps", "1 <= P < n", "P tau of order T"),
        rates.rounds_of_a_sample_repaired,
    ),
    "gap-of-remark-1": Evidence(rates.gap_of_remark_1, (*PRINTED, *rates.CONDITIONS_OF_REMARK_1)),
    "quarter-of-lemma-c.3": Evidence(concave.quarter, (concave.ASCENT_CAP, concave.SECOND_CAP), concave.three_eighths),
    "momentum-in-algorithm-1": Evidence(
        algorithm.momentum_in_lines_10_to_12,
        (algorithm.MOMENTUM, algorithm.COEFFICIENTS),
        algorithm.coefficients_that_change,
    ),
}
ARGUMENTS = {
    "participation-error-and-local-steps": rates.work_lowers_the_participation_error,
    "kappa-of-the-pl-case": envelope.ascent_gradient_without_concavity,
    "quadratics-outside-assumption-3": envelope.different_hessians,
}
ERRATA, SUPPLEMENTS, WORDING = read_errata(__file__, EVIDENCE, ARGUMENTS)
