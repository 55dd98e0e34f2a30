"""What Li et al. (2024) say that is false, how false, and what holds instead; what their errata lead to; wording."""

from __future__ import annotations

from collections.abc import Sequence

from fedbounds.bounds.audit.counterexample import Erratum, Quote, Supplement, Wording
from fedbounds.bounds.papers.fedmrn import assumptions as said
from fedbounds.bounds.papers.fedmrn import errata_masks as masks
from fedbounds.bounds.papers.fedmrn import errata_moments as moments
from fedbounds.bounds.papers.fedmrn.errata_masks import AT_START, SIGNED
from fedbounds.bounds.papers.fedmrn.results import CURVATURE, FIRST_MOMENT, SAMPLED, SEVERAL
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE

LITERAL = "false under a literal reading"
STRONGLY_CONVEX, CURVED, SAMPLING = said.STRONGLY_CONVEX, said.QUADRATIC_GROWTH, said.SAMPLING
ONE_ITERATION = (said.GRADIENT_BOUND, said.FIRST_ERROR, SAMPLING, said.INDEPENDENT_MASKS, said.FALLING_STEPS)
VARIANCE = Quote("the variance of stochastic gradients is bounded", "Assumption 2")

ERRATA: Sequence[Erratum] = (
    Erratum(
        "masking-error-at-zero",
        where="Assumption 4, said of the stochastic masking (8)",
        claim="FedMRN's stochastic masking satisfies E|S(x) - x|^2 <= q^2 |x|^2 for some q",
        fails="The size of the noise is fixed by its generator, not by the update. At the start of every round the "
        "update is 0, and its masked version is as long as the noise.",
        instead="for signed masks within their bounds E|S(u) - u|^2 = d a^2 - |u|^2. Both theorems hold for operators "
        "that do satisfy Assumption 4, as sparsifiers; for FedMRN's own masks they hold with d where they have q^2",
        under=(SIGNED, AT_START),
        replay=masks.masking_error_at_zero,
        repair=("theorem-1[repaired]", "theorem-2[repaired]", "theorem-1[repaired:R1]", "theorem-2[repaired:R2]"),
    ),
    Erratum(
        "frozen-amplitude",
        where="Theorem 1 and Remark 2",
        claim="FedMRN with the masks that Theorem 1 prescribes converges as O(1/T) on strongly convex problems",
        fails="The remark speaks under the conditions of Theorem 1. Assumption 4 is one of them: of operators that "
        "meet it the remark is true. The masks that the theorem prescribes do not meet it (masking-error-at-zero), so "
        "that nothing follows for them, and of them O(1/T) is false. Their noise keeps the amplitude 2 eta_0 S G while "
        "the steps fall, so that every round adds masks of the same size: where K is odd each coordinate moves by at "
        "least a/K in every round, and on isotropic quadratics the gap grows with T, so that Assumption 3 holds for no "
        "G in all iterations. For every q, (11) fails for all large even T.",
        instead="O(1/T) for operators that do satisfy Assumption 4; for masks of amplitude eta_{t_0} S G, t_0 the "
        "round's first step, (11) holds with d where it has q^2 (R1), for as long as G bounds their gradients, which "
        "is not for ever (masks-outrun-a-sure-bound)",
        under=(
            CURVED,
            STRONGLY_CONVEX,
            said.NOISE,
            MARTINGALE,
            INDEPENDENT_CLIENTS,
            said.INDEPENDENT_MASKS,
            SAMPLING,
            said.FROZEN_MASKS,
        ),
        replay=masks.frozen_amplitude,
        repair=("theorem-1[repaired:R1]", "theorem-1[sharp:masks]", "remark-2-strongly-convex[printed]"),
        degree="false as an inference",
        quotes=(Quote("under the conditions of Theorem 1", "Remark 2"), Quote("2 eta_0 S G", "Theorem 1")),
    ),
    Erratum(
        "hypotheses-exclude-each-other",
        where="Theorem 1 for signed masks",
        claim="Theorem 1 speaks of FedMRN on every strongly convex problem with bounded gradients",
        fails="At the start of a round a gradient is taken at w +- a, where strong convexity makes it at least mu a "
        "sqrt(d) in the mean square (Assumption 3 is read there, as (33) needs it, and not at w). With a = 2 eta_0 S "
        "G that exceeds G unless 4 S sqrt(d) <= gamma; for quadratics with tight L it does for every S >= 2.",
        instead="with amplitude eta_{t_0} S G a larger declared L makes room, for as many iterations as one likes but "
        "not for all (masks-outrun-a-sure-bound)",
        under=(SIGNED, AT_START, STRONGLY_CONVEX),
        replay=masks.hypotheses_exclude_each_other,
        repair=("theorem-1[repaired:R1]",),
        argument=masks.room_for_masks,
        degree="false as an inference",
    ),
    Erratum(
        "drift-of-one-client",
        where="Lemma 2, (17), for every client k; the same after (51)",
        claim="E[w_bar_t - x_k^t] = 0 and E|w_bar_t - x_k^t|^2 <= 4 (1 + q^2) eta_t^2 (S-1)^2 G^2 for every client",
        fails="A client may move away from the others, by nearly twice what all may move; only the mean over the "
        "clients is 0, and only the mean square is bounded so.",
        instead="the same on average over the clients, which is all that the theorems use",
        under=ONE_ITERATION,
        replay=moments.drift_of_one_client,
        refutes=("lemma-2[printed]",),
        repair=("lemma-2[repaired]", "lemma-2[sharp]", "theorem-1[repaired]", "theorem-2[repaired]"),
        quotes=(Quote("E[w_bar_t - x_k^t] = 0", "(17)"),),
    ),
    Erratum(
        "progressive-masking-squares-its-probability",
        where="Proposition 1",
        claim="Progressive masking reduces q to q sqrt(sum of tau^2/S^3)",
        fails="A coordinate is masked or not: the square of that is itself, with mean tau/S. The printed factor is "
        "that of a blend (1 - p) u + p S(u), which is not what (10) does.",
        instead="q sqrt((S+1)/(2S)) in the local steps, 0.71 q for many of them where the paper has 0.58 q; the "
        "uploaded update is masked as a whole, so the q in c stays",
        under=(said.RELATIVE_ERROR, said.PROGRESSIVE),
        replay=masks.squared_probability,
        refutes=("proposition-1[printed]",),
        repair=("proposition-1[repaired]",),
        quotes=(Quote("reduce by ... times", "Proposition 1"),),
    ),
    Erratum(
        "one-local-step-is-not-sign-sgd",
        where="Remark 1, K = N and S = 1",
        claim="With one local step and signed masks the gradients are taken at the model, as SignSGD takes them",
        fails="The update 0 is masked too, so that every gradient is taken at w +- a; (17) then says 0 and is d a^2.",
        instead="a term 4 d G^2/T remains in (12); binary masks do take the first gradient at the model",
        under=(SIGNED, AT_START),
        replay=masks.one_local_step,
        repair=("theorem-2[repaired:R2]",),
        degree="false as an inference",
    ),
    Erratum(
        "one-local-step-of-theorem-2",
        where="Theorem 2 at S = 1 for signed masks; Remark 1 at K = N",
        claim="For some q that does not depend on the problem, (12) holds for the signed masks that it prescribes",
        fails="At S = 1 and K = N all that (12) says of masks is 4 q^2 G^2/(N sqrt(T)), which is small for many "
        "clients. But their gradients are taken at w +- a, and where a function is not symmetric, the mean of these "
        "is not the gradient at w: many clients that start at the minimizer leave it together. For every q, (12) "
        "fails from some N on.",
        instead="a term 4 d G^2/T remains in (12), whatever N is",
        under=(
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
        replay=masks.many_clients_leave_the_minimizer,
        repair=("theorem-2[repaired:R2]", "theorem-2[sharp:masks]"),
        degree="false as an inference",
        repeats="masking-error-at-zero",
    ),
    Erratum(
        FIRST_MOMENT,
        where="Assumption 4, used in Lemma 3, (40)",
        claim="E|S(x) - x| <= q |x| gives E|w_bar_{t+1} - v_bar_{t+1}|^2 <= 4 c eta_t^2 S^2 G^2",
        fails="Read as a bound on the square, as (36) and (40) use it, Assumption 4 is enough. Read literally it is "
        "not: a masked update that is seldom far off has a small mean error and as large a mean square as one likes. "
        "Assumptions 2 and 3 say in words that squares are meant, Assumption 4 does not.",
        instead="with E|S(x) - x|^2 <= q^2 |x|^2",
        under=(*ONE_ITERATION, SAMPLED, SEVERAL),
        replay=moments.masks_of_lemma_3,
        refutes=("lemma-3[printed]",),
        repair=("lemma-3[repaired]", "lemma-3[sharp]"),
        degree=LITERAL,
        quotes=(VARIANCE, Quote("squared norm", "Assumption 3")),
    ),
    Erratum(
        "first-moments-in-theorem-1",
        where="Theorem 1 under Assumption 4 as printed",
        claim="(11) follows from a bound on E|S(x) - x|",
        fails="The variance of stochastic gradients is bounded, as Assumption 2 says, and their squared norm, as "
        "Assumption 3 says. The gap after one step from the minimizer is the variance of the masks, which E|S(x) - x| "
        "does not bound.",
        instead="(11) with the square of Assumption 4",
        under=(CURVED, STRONGLY_CONVEX, *said.PRINTED, CURVATURE, SAMPLED, SEVERAL),
        replay=moments.gap_of_theorem_1,
        refutes=("theorem-1[printed]",),
        repair=("theorem-1[repaired]",),
        degree=LITERAL,
        quotes=(VARIANCE,),
        repeats=FIRST_MOMENT,
    ),
    Erratum(
        "first-moments-in-theorem-2",
        where="Theorem 2 under Assumption 4 as printed",
        claim="(12) follows from a bound on E|S(x) - x|",
        fails="The variance of stochastic gradients is bounded, as Assumption 2 says, and they are bounded themselves. "
        "The squared gradient after some steps is the variance of the masks, which E|S(x) - x| does not bound.",
        instead="(12) with the square of Assumption 4 and Lipschitz gradients",
        under=(CURVED, *said.PRINTED, said.BELOW, SAMPLED, SEVERAL),
        replay=moments.gradient_of_theorem_2,
        refutes=("theorem-2[printed]",),
        repair=("theorem-2[repaired]",),
        degree=LITERAL,
        quotes=(VARIANCE,),
        repeats=FIRST_MOMENT,
    ),
    Erratum(
        "one-sided-smoothness",
        where="Assumption 1, used in Lemma 5, (61)",
        claim="F(v) <= F(w) + <v - w, grad F(w)> + L/2 |v - w|^2 gives (26)",
        fails="That bounds the curvature from above alone. Where a function curves down by more than L, its gradients "
        "differ by more than L times the distance, and (61) needs that they do not.",
        instead="(26) for gradients that are Lipschitz with L; for convex functions, as in Theorem 1, that is the same",
        under=(CURVED, MARTINGALE, SAMPLING),
        replay=moments.curvature_from_above,
        refutes=("lemma-5[printed]",),
        repair=("lemma-5[repaired]", "theorem-2[repaired]"),
        degree=LITERAL,
    ),
    Erratum(
        "minimum-of-the-wrong-function",
        where="(54), second line",
        claim="C <= gamma_t (eta_t L - 1) mean of (F_k(w_bar_t) - F_k*) + (4 L eta_t^2 + gamma_t eta_t L) Gamma + ...",
        fails="F* is needed where F_k* is printed; the difference is Gamma, and its factor is negative.",
        instead="the line with F*, from which (54) goes on; Lemma 4 stands",
        under=(CURVED, STRONGLY_CONVEX, "eta_t <= 1/(4L)"),
        replay=masks.wrong_minimum,
        repair=("lemma-4/S20", "lemma-4[printed]"),
        degree=LITERAL,
        quotes=(Quote("F_k^*", "(54)"),),
    ),
)

SUPPLEMENTS: Sequence[Supplement] = (
    Supplement(
        "binary-masks-are-biased",
        "Theorems 1 and 2, which speak of signed masks",
        "For binary masks the theory says nothing: on noise of either sign their mean is half of that of signed masks, "
        "u/2 on noise {-a, a}. On noise of twice the size they equal signed masks only once they are shifted by -n",
        argument=masks.binary_bias,
    ),
    Supplement(
        "the-sign-of-the-noise-is-lost",
        "Theorems 1 and 2, noise on {-a, a}",
        "A signed mask on noise {-a, a} has the same law for either sign of the noise, so that the seed says nothing: "
        "one noise vector per round, as Algorithm 1 has it, is as good as the fresh ones of (14)",
        argument=masks.idle_sign,
    ),
    Supplement(
        "the-rate-hides-the-dimension",
        "Remark 2",
        "The rates of FedMRN and FedAvg are the same in T. What the O hides is not: every bound on the masks' error is "
        "proportional to the number of parameters d, of which q would have to be about the root",
        argument=masks.dimension,
    ),
    Supplement(
        "masks-outrun-a-sure-bound",
        "Theorem 1 for signed masks, also as repaired (R1)",
        "No G bounds the gradients of signed masks surely in all iterations, even with amplitude eta_{t_0} S G: masks "
        "of all rounds may point one way, and what they add up to has no limit. 2 sqrt(d) log((gamma + T)/(gamma + 1)) "
        "<= 1 is needed, and so T <= 1 + gamma/(2 sqrt(d) - 1), so that (11) falls by 1.65 times at most before its "
        "hypotheses end; that the gap falls on in runs, no form here claims. A server that projects its model onto a "
        "ball around w_1 that holds w* keeps the hypotheses: of the proof (20) alone changes, whose = becomes <=",
        argument=masks.masks_exceed_gradient_bound,
    ),
)

WORDING: Sequence[Wording] = (
    Wording(
        "first-moments-for-second-moments",
        "Assumptions 2 and 3",
        "E|grad F_k(w_k, xi) - grad F_k(w_k)| <= sigma and E|grad F_k(w_k, xi)| <= G",
        "the same of the squares, as the sentences before them say and as the proofs use them, from that of Lemma 1 "
        "(F.1) on; Lemma 1 takes noise to be uncorrelated between clients besides",
        quotes=(VARIANCE, Quote("squared norm", "Assumption 3")),
    ),
    Wording(
        "lemma-5-needs-masks",
        "Lemma 5",
        "Assumption 1 and the step size",
        "unbiased masks besides, E[w_bar_{t+1} - v_bar_{t+1}] = 0, which (58) takes from Lemma 3; Lemma 4 needs none",
    ),
    Wording(
        "gradients-where-they-are-taken",
        "Assumptions 2 and 3",
        "at w_k^t, for t = 1, ..., T",
        "at x_k^t, where they are taken, and from t = 0 in Theorem 2; surely for (33), in the mean square for (35)",
    ),
    Wording(
        "first-synchronization",
        "Appendix B, I_S = {S, 2S, ...}",
        "the last synchronization t_0 <= t is one of S, 2S, ...",
        "the start too, else there is none before S",
    ),
    Wording(
        "steps-from-one",
        "Theorem 1",
        "eta_t = 2/(mu (gamma + t)), T = RS",
        "the first step is that of t = 1: at t = 0 it would exceed 1/(4L) where 8 kappa >= S",
    ),
    Wording("negative-indices", "(33)", "eta_i <= eta_{t-S}", "eta_i <= eta_{t_0}; t - S may be negative"),
    Wording(
        "zero-over-zero",
        "Lemma 3 and both theorems",
        "c = (q^2 (N-1) + N - K)/(K (N-1))",
        "q^2/K + (N-K)/(K(N-1)), whose second part is 0 for one client",
    ),
    Wording(
        "chance-of-a-mask",
        "Appendix, p_tau",
        "(tau mod S + 1)/S for tau = 1, ..., S",
        "tau/S, as in Algorithm 1 and the main text; shifted, the last local step would be masked with chance 1/S",
    ),
    Wording(
        "fresh-noise",
        "(14)",
        "the noise of client k in iteration t",
        "one noise vector per round, as in Algorithm 1; for signed masks on {-a, a} that makes no difference",
    ),
    Wording(
        "twice-the-amplitude",
        "Theorems 1 and 2",
        "noise on {-2 eta S G, 2 eta S G}",
        "half of it is enough: no update leaves eta_{t_0} S G",
    ),
    Wording("lemma-2-needs-masks", "Lemma 2", "Assumption 3 and the steps", "Assumption 4 as well"),
    Wording("beta", "(22)", "with beta > 1/mu, gamma > 0 we have eta_1 <= ...", "such that"),
    Wording(
        "u-strongly",
        "Assumption 5",
        "u-strongly convex",
        "mu-strongly convex",
        quotes=(Quote("u-strongly", "Assumption 5"),),
    ),
    Wording(
        "signs", "(33), (34), (61)", "a sign between two brackets, a missing minus, ++", "the other sign, a minus, +"
    ),
    Wording("expectations", "(35), (38), (62)", "E is missing in three places", "E; (38) holds given the cohort"),
    Wording("equation-numbers", "after (62)", "(62) into (60)", "into (59)"),
    Wording("constant-step", "(28), (29)", "eta_t", "eta"),
    Wording(
        "rounded-differences",
        "Table 2",
        "sums of differences of Table 1",
        "eight of 36 differ from Table 1 by 0.1 to 0.2, as rounding may",
    ),
    Wording("names-of-methods", "Tables 1 and 2", "TernGard", "TernGrad"),
    Wording("fedpm-average", "Section 2, FedPM", "a sum over N clients divided by K", "over the K that take part"),
)
