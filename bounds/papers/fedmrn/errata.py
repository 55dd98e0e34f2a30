"""What Li et al. (2024) say that is false, how false, and what holds instead; what their errata lead to; wording."""

from fedbounds.bounds.audit.errata import Evidence, read_errata
from fedbounds.bounds.papers.fedmrn import assumptions as said
from fedbounds.bounds.papers.fedmrn import errata_masks as masks
from fedbounds.bounds.papers.fedmrn import errata_moments as moments
from fedbounds.bounds.papers.fedmrn.errata_masks import AT_START, SIGNED
from fedbounds.bounds.papers.fedmrn.results import CURVATURE, SAMPLED, SEVERAL
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE

STRONGLY_CONVEX, CURVED, SAMPLING = said.STRONGLY_CONVEX, said.QUADRATIC_GROWTH, said.SAMPLING
ONE_ITERATION = (said.GRADIENT_BOUND, said.FIRST_ERROR, SAMPLING, said.INDEPENDENT_MASKS, said.FALLING_STEPS)

EVIDENCE = {
    "masking-error-at-zero": Evidence(masks.masking_error_at_zero, (SIGNED, AT_START)),
    "frozen-amplitude": Evidence(
        masks.frozen_amplitude,
        (
            CURVED,
            STRONGLY_CONVEX,
            said.NOISE,
            MARTINGALE,
            INDEPENDENT_CLIENTS,
            said.INDEPENDENT_MASKS,
            SAMPLING,
            said.FROZEN_MASKS,
        ),
    ),
    "hypotheses-exclude-each-other": Evidence(
        masks.hypotheses_exclude_each_other, (SIGNED, AT_START, STRONGLY_CONVEX), masks.room_for_masks
    ),
    "drift-of-one-client": Evidence(moments.drift_of_one_client, ONE_ITERATION),
    "progressive-masking-squares-its-probability": Evidence(
        masks.squared_probability, (said.RELATIVE_ERROR, said.PROGRESSIVE)
    ),
    "one-local-step-is-not-sign-sgd": Evidence(masks.one_local_step, (SIGNED, AT_START)),
    "one-local-step-of-theorem-2": Evidence(
        masks.many_clients_leave_the_minimizer,
        (
            said.LIPSCHITZ,
            said.BELOW,
            said.NOISE,
            MARTINGALE,
            INDEPENDENT_CLIENTS,
            said.SURE_GRADIENT_BOUND,
            said.INDEPENDENT_MASKS,
            SAMPLING,
            said.FIXED_MASKS,
        ),
    ),
    "first-moment-of-masks": Evidence(moments.masks_of_lemma_3, (*ONE_ITERATION, SAMPLED, SEVERAL)),
    "first-moments-in-theorem-1": Evidence(
        moments.gap_of_theorem_1, (CURVED, STRONGLY_CONVEX, *said.PRINTED, CURVATURE, SAMPLED, SEVERAL)
    ),
    "first-moments-in-theorem-2": Evidence(
        moments.gradient_of_theorem_2, (CURVED, *said.PRINTED, said.BELOW, SAMPLED, SEVERAL)
    ),
    "one-sided-smoothness": Evidence(moments.curvature_from_above, (CURVED, MARTINGALE, SAMPLING)),
    "minimum-of-the-wrong-function": Evidence(masks.wrong_minimum, (CURVED, STRONGLY_CONVEX, "eta_t <= 1/(4L)")),
}
ARGUMENTS = {
    "binary-masks-are-biased": masks.binary_bias,
    "the-sign-of-the-noise-is-lost": masks.idle_sign,
    "the-rate-hides-the-dimension": masks.dimension,
    "masks-outrun-a-sure-bound": masks.masks_exceed_gradient_bound,
}
ERRATA, SUPPLEMENTS, WORDING = read_errata(__file__, EVIDENCE, ARGUMENTS)
