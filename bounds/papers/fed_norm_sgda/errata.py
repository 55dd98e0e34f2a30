"""Claims of Sharma et al. (2023) that fail, each with a counterexample in exact arithmetic and what holds instead."""

from __future__ import annotations

from collections.abc import Sequence

from fedbounds.bounds.audit.counterexample import Erratum, Quote, Supplement, Wording
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
from fedbounds.bounds.papers.fed_norm_sgda.concave import RADIUS_ERRATUM
from fedbounds.bounds.papers.fed_norm_sgda.corollaries import MOREAU_ERRATUM, ROUNDS_ERRATUM, SAMPLE_ERRATUM
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import (
    DESCENT_ERRATUM,
    DESCENT_SMOOTHNESS_ERRATUM,
    WHOLE_NOISE_ERRATUM,
)
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_1, LEMMA_C_2, LEMMA_C_4, ONE_BLOCK
from fedbounds.bounds.papers.fed_norm_sgda.results import CROSS_TERM
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE

THEOREM_1 = (*PRINTED, *descent.PRINTED_CONDITIONS)  # as printed
ONE_ROUND = (*PRINTED, MARTINGALE, INDEPENDENT_CLIENTS)
LEMMAS_C = {1: LEMMA_C_1.form("printed"), 2: LEMMA_C_2.form("printed"), 4: LEMMA_C_4.form("printed")}
STEPS_OF_LEMMA_B_5 = ("(a)", "(b)", "(c)", "(d)", "(e)", "(f)")

ERRATA: Sequence[Erratum] = (
    Erratum(
        ROUNDS_ERRATUM,
        where="the rounds that Corollary 2.2, Theorem 3 and Tables 1 and 2 draw from Theorem 4: full participation, "
        "and a sample of clients who are alike",
        claim="Theorem 4 gives an epsilon-stationary point of a nonconvex-concave problem in T = O(1/epsilon^4) rounds",
        fails="It takes a step in y that grows like sqrt(T), but Theorem 4 itself demands Gamma_y <= 1/(8 Lf) for "
        "every sample of P clients, 1/(16 Lf) if all take part. Then 1/(Gamma_x T), Gamma_x S and 1/(Gamma_y S) cannot "
        "all fall faster than T^(-1/3), however the step sizes and S are chosen.",
        instead="O(1/epsilon^6) rounds follow from Theorem 4, with the O(1/(n epsilon^8)) gradients that the paper "
        "states; local work helps up to n tau of order T^(1/3). Whether the algorithm needs as many is open",
        under=(rates.SAMPLES, rates.ASCENT_CAP, rates.SECOND_CAP, rates.POSITIVE, rates.TARGET),
        replay=rates.rounds_of_theorem_4,
        repair=("table-1-nc-c[repaired]",),
        argument=rates.epsilon_to_the_sixth,
        degree="false as an inference",
    ),
    Erratum(
        "steps-beyond-the-cap",
        where="Theorem 2 (7) and the proof of Corollary 2.2",
        claim="gamma_y = Theta(P^(3/4)/(taueff T)^(1/4)) meets the conditions of Theorem 4 for n tau as large as T",
        fails="Gamma_y = taueff gamma_y is then of order sqrt(T), and the cap is a constant.",
        instead="it meets them if T >= (16 Lf)^4 (taueff P)^3, so for n tau up to order T^(1/3)",
        under=(rates.FULL, rates.LESS_WORK, rates.MUCH_WORK),
        replay=rates.printed_steps,
        argument=rates.capped_steps,
        degree="false as an inference",
        repeats=ROUNDS_ERRATUM,
    ),
    Erratum(
        "lost-initial-dual-gap",
        where="Theorem 1, (18) and (4)",
        claim="The average of |grad Phi(x_t)|^2 is at most a constant times (18), whose only initial term is Delta",
        fails="Lemma B.5 starts from delta_0 = Phi(x_0) - F(x_0, y_0), which Delta does not bound; the proof drops it. "
        "With x_0 optimal, y_0 not, and no noise (18) is 0.",
        instead="(18) with 10 kappa^2 delta_0/(Gamma_y T) (60 in the paper's own chain); it is gone only if y_0 "
        "maximizes F(x_0, .)",
        under=THEOREM_1,
        replay=descent.lost_dual_gap,
        refutes=("theorem-1[printed]", "theorem-1-at-its-steps[printed]", "remark-3[printed]"),
        repair=("theorem-1[repaired]", "theorem-1-at-its-steps[repaired]"),
    ),
    Erratum(
        "step-in-x-without-a-floor",
        where="Theorem 1, (18)",
        claim="(18), with kappa^2 Delta/(Gamma_y T), holds for every gamma_x <= gamma_y/(156 kappa^2)",
        fails="The condition bounds gamma_x from above only. With a tiny step x stays where it is, and the right-hand "
        "side vanishes as T grows. At the largest step, which the proof has in mind, (18) has the right order.",
        instead="the first term is of order Delta/(Gamma_x T), which is the printed one if gamma_x is also at least of "
        "order gamma_y/kappa^2",
        under=THEOREM_1,
        replay=descent.step_in_x_without_a_floor,
        refutes=("theorem-1[printed]",),
        repair=("theorem-1[repaired]",),
        argument=descent.step_in_x_with_a_floor,
        degree="unstated but harmless",
    ),
    Erratum(
        "smoothness-of-the-envelope",
        where="Lemma B.1",
        claim="max_y f(x, y) is smooth with constant (kappa/2 + 1) Lf",
        fails="The maximizer moves kappa times as fast as x; in one dimension each the envelope's curvature is "
        "kappa Lf at most, and it is reached.",
        instead="Lf sqrt(1 + kappa^2), so (1 + kappa) Lf; it enters step sizes and one constant, no order",
        under=(JOINTLY_SMOOTH, STRONGLY_CONCAVE),
        replay=envelope.envelope_smoothness,
        refutes=("lemma-b.1[printed]",),
        repair=("lemma-b.1[repaired]",),
        argument=envelope.envelope_is_smooth,
    ),
    Erratum(
        CROSS_TERM,
        where="Lemma B.2, (14) and (19); again in (25), (36), (37), (63) and (65)",
        claim="Unbiased noise makes the products of a client's noise and of its gradients vanish, so that (14) holds "
        "without any condition on the steps",
        fails="The gradient at a local model depends on the noise of the steps before it; with two local steps or more "
        "the product has a mean, positive where the curvature is negative.",
        instead="(14) with its right-hand side doubled, or as printed if every client takes one step; the repaired "
        "forms of Theorems 1 and 4 carry the factor as nu. That Lemma B.4 is false has not been shown: it has a "
        "slack of 4",
        under=(*ONE_ROUND, BLOCK_NOISE),
        replay=noise.cross_term,
        refutes=("lemma-b.2[printed]",),
        repair=("lemma-b.2[repaired]", "lemma-b.3[repaired]", "lemma-b.4[repaired]"),
        argument=noise.doubled_squares,
        quotes=(Quote("unbiasedness", "proof of Lemma B.2, the reason given for (19)"),),
    ),
    *(
        Erratum(
            f"{ONE_BLOCK}.{number}",
            where=f"Lemma C.{number}, as printed",
            claim=claim,
            fails="Assumption 2 is about the gradient as a whole: noise in x may grow with the gradient in y, which Gx "
            "does not bound.",
            instead="it holds with Assumption 2 for each block" + tail,
            under=LEMMAS_C[number].assumptions,
            replay=replay,
            refutes=(f"lemma-c.{number}[printed]",),
            repair=(f"lemma-c.{number}[{form}]",),
            degree="false under a literal reading",
            repeats=WHOLE_NOISE_ERRATUM,
        )
        for number, claim, tail, replay, form in (
            (
                1,
                "E|g_x|^2 <= I_1^2, which makes the Moreau envelope increase by at most Lemma C.1's bound",
                ", at the price nu",
                blocks.one_block_in_c_1,
                "repaired",
            ),
            (
                2,
                "With |grad_x f_i| <= Gx the local drift is at most Lemma C.2's bound",
                ", at the price nu",
                blocks.one_block_in_c_2,
                "repaired",
            ),
            (
                4,
                "x moves by at most Gamma_x I_1 a round in mean square, so the gap away from the snapshot is at most "
                "Lemma C.4's",
                "",
                blocks.one_block_in_c_4,
                "explicit",
            ),
        )
    ),
    Erratum(
        DESCENT_SMOOTHNESS_ERRATUM,
        where="Lemma B.3, (15)",
        claim="With L_Phi = (kappa/2 + 1) Lf one round changes the envelope by at most (15)",
        fails="The envelope may curve by kappa Lf, and then noise raises it by more, however small the step.",
        instead="(15) with (1 + kappa) Lf, and the squared direction at the price nu",
        under=(*ONE_ROUND, BLOCK_NOISE),
        replay=envelope.descent_at_the_saddle_of_the_envelope,
        refutes=("lemma-b.3[printed]",),
        repair=("lemma-b.3[repaired]",),
        repeats="smoothness-of-the-envelope",
    ),
    Erratum(
        DESCENT_ERRATUM,
        where="Lemma B.3, (15)",
        claim="With betaL = 0 and all clients taking part, one round changes the envelope by at most (15), whatever "
        "the steps, also with (1 + kappa) Lf for its smoothness",
        fails="(15) rests on (14). Where noise in y moves the local y, and y the gradient in x, the product that (14) "
        "drops is as large as what it keeps. The instance needs Gamma_x = 10; Theorem 1 admits 3.2e-5 there, where no "
        "counterexample to (15) with (1 + kappa) Lf is known.",
        instead="(15) with the squared direction at the price nu = 2; the conditions that Lemma B.3 lists bound no "
        "step here, those of Theorem 1 do",
        under=(*ONE_ROUND, BLOCK_NOISE),
        replay=noise.descent_at_the_saddle,
        refutes=("lemma-b.3[explicit]",),
        repair=("lemma-b.3[repaired]",),
        degree="false under a literal reading",
        repeats=CROSS_TERM,
    ),
    Erratum(
        "shared-noise-of-descent-and-ascent",
        where="(34), in the proof of Lemma B.5",
        claim="E<grad_y F(x_(t+1), y_t), g_y> = E<grad_y F(x_(t+1), y_t), sum_i w_i h_(y,i)>, which gives (34)",
        fails="x_(t+1) comes from the same samples and the same clients as g_y; where the noises of the two blocks go "
        "together, ascent is worse than (34) says.",
        instead="(34) with grad_y F(x_t, y_t), plus Gamma_x Gamma_y Lf/2 (E|g_x|^2 + E|g_y|^2); as Gamma_x <= Gamma_y/"
        "(156 kappa^2) it costs next to nothing",
        under=(*ONE_ROUND, BLOCK_NOISE, "(a)", "(b)", "(c)", "(d), (e), (f)"),
        replay=noise.shared_noise,
        repair=("lemma-b.5[repaired]",),
        argument=noise.ascent_at_the_old_point,
    ),
    Erratum(
        WHOLE_NOISE_ERRATUM,
        where="Assumption 2 and (14), hence Lemmas C.1 and C.2",
        claim="With noise of variance betaL^2 |grad f_i|^2 + sigmaL^2, that in x is bounded by betaL^2 |grad_x f_i|^2 "
        "+ sigmaL^2",
        fails="With betaL > 0 the noise may grow with the gradient in y and fall on x.",
        instead="Assumption 2 for each block; for betaL = 0 the printed one implies it",
        under=ONE_ROUND,
        replay=noise.noise_of_one_block,
        argument=noise.block_by_block,
        degree="false under a literal reading",
    ),
    Erratum(
        RADIUS_ERRATUM,
        where="Lemmas C.3 and C.5, hence Theorems 2, 3 and 4",
        claim="If |y_t|^2 <= R in every round, |y_t - y*|^2 <= 4R and the average gap of a block is at most "
        "4R/(Gamma_y S) and so on",
        fails="Nothing keeps the maximizer in that ball; a run that has just begun is far from it.",
        instead="R has to bound |y*(x^(s))|^2 at the snapshots as well",
        under=concave.HYPOTHESES,
        replay=concave.bound_on_the_iterates_only,
        refutes=("lemma-c.3[printed]", "lemma-c.5[printed]"),
        repair=("lemma-c.3[repaired]", "theorem-4[repaired]"),
        argument=concave.bound_on_the_maximizer_too,
        degree="unstated but harmless",
    ),
    Erratum(
        MOREAU_ERRATUM,
        where="Corollary 2.1 in the main text",
        claim="|grad Phi_(1/2Lf)|^2 <= epsilon'_opt + 8 Lf^2 times the mean squared distance of the proximal points, "
        "with epsilon'_opt a number",
        fails="|u + v|^2 is not at most |u|^2 + 2|v|^2. The paper bounds epsilon'_opt by (7), an O(.), which takes any "
        "factor in; only who puts in a number is misled.",
        instead="2 epsilon'_opt, as (55) in the appendix has it",
        under=(*CONCAVE_PRINTED, envelope.WEIGHTS),
        replay=envelope.moreau_gap,
        refutes=("corollary-2.1[printed]",),
        repair=("corollary-2.1[explicit]",),
        argument=envelope.moreau_triangle,
        degree="false under a literal reading",
    ),
    Erratum(
        "uneven-local-coefficients",
        where="Lemma B.5, the step to (38)",
        claim="The conditions of Lemma B.5 imply Gamma_y Lf (n/P)(1 + 2 Gamma_x^2 Lf/Gamma_y)(dW + betaL^2 K) <= 1, K "
        "the largest w_i a_i^(k)/|a_i|_1",
        fails="They control Q = max w_i |a_i|_2^2/|a_i|_1^2, which is smaller than K where one local step is much "
        "longer than the others.",
        instead="ask for it, as condition (g); for plain local steps K = Q and it follows",
        under=(JOINTLY_SMOOTH, NOISE, HETEROGENEITY, STRONGLY_CONCAVE, SAMPLING, LOCAL_MAP, *STEPS_OF_LEMMA_B_5),
        replay=descent.uneven_steps,
        argument=descent.controlled_coefficient,
        degree="false as an inference",
        quotes=(Quote("8 tau gamma_x L_Phi <= P", "proof of Lemma B.5, the reason given for (38)"),),
    ),
    Erratum(
        "shrinking-local-coefficients",
        where="(26) and Remark 7",
        claim="Norms of a_i(k) that do not decrease in k give sum_(j<k) [a^(j)(k)]^2 <= |a|_2^2 - [a^(tau-1)]^2, "
        "averaged over k with weights a^(k)/|a|_1",
        fails="A later row may have a larger norm and yet smaller early entries, as proximal steps have.",
        instead="it holds if a^(j)(k) <= a^(j)(tau) for all j < k <= tau: plain steps, variable step sizes, momentum",
        under=descent.REMARK_7,
        replay=descent.shrinking_coefficients,
        argument=descent.growing_coefficients,
        degree="unstated but harmless",
        quotes=(Quote("|a_i(k)|_1 <= |a_i(k)|_1, |a_i(k+1)|_2 <= |a_i(k+1)|_2", "Remark 7"),),
    ),
    Erratum(
        SAMPLE_ERRATUM,
        where="Corollary 1.2, partial participation with sigmaG = 0",
        claim="O(kappa^2/epsilon^2) rounds with O(kappa^4/(P epsilon^4)) gradients are admissible for Theorem 1",
        fails="They mean P tau of order T, and then condition (b) bounds kappa betaG^2 d/P by a constant.",
        instead="O(kappa^3 d/(P epsilon^2)) rounds where that is more: the power of epsilon is right, of kappa not",
        under=("equal weights and local steps", "1 <= P < n", "P tau of order T"),
        replay=rates.rounds_of_a_sample,
        argument=rates.rounds_of_a_sample_repaired,
        degree="false as an inference",
    ),
    Erratum(
        "gap-of-remark-1",
        where="Remark 1, (6)",
        claim="(6), taken by itself, bounds the average of |grad Phi(x_t)|^2 up to a constant",
        fails="(6) shows how (4) depends on noise, heterogeneity and sampling, and leaves out kappa^2 and the term of "
        "the initial gap; without noise and heterogeneity nothing is left of it.",
        instead="(4), with (taubar/taueff)/sqrt(P taubar T) and kappa^2",
        under=(*PRINTED, *rates.CONDITIONS_OF_REMARK_1),
        replay=rates.gap_of_remark_1,
        refutes=("remark-1[printed]",),
        repair=("remark-1[repaired]",),
        degree="false under a literal reading",
    ),
    Erratum(
        "quarter-of-lemma-c.3",
        where="proof of Lemma C.3",
        claim="The caps on Gamma_y imply 2 Gamma_y Lf (n/P) [(P-1)/(n-1) + betaG^2 (dW + betaL^2 Q)] <= 1/4",
        fails="They bound three quantities by 1/8 each.",
        instead="3/8, and Lemma C.3 keeps its constants",
        under=(concave.ASCENT_CAP, concave.SECOND_CAP),
        replay=concave.quarter,
        argument=concave.three_eighths,
        degree="false as an inference",
    ),
    Erratum(
        "momentum-in-algorithm-1",
        where="Algorithm 1, lines 10 to 12, read without Remark 7",
        claim="With the final coefficients of Appendix A.1 lines 10 to 12 are local momentum",
        fails="With momentum the coefficient of a gradient grows from step to step, and lines 10 to 12 have one for "
        "good. Remark 7 leaves the step k out for notation, and (12) has it; who implements the lines as they stand "
        "takes the second gradient elsewhere.",
        instead="the local map (12), with a_i^(j)(k) that depends on k, covers it",
        under=(algorithm.MOMENTUM, algorithm.COEFFICIENTS),
        replay=algorithm.momentum_in_lines_10_to_12,
        argument=algorithm.coefficients_that_change,
        degree="false under a literal reading",
    ),
)

SUPPLEMENTS: Sequence[Supplement] = (
    Supplement(
        "participation-error-and-local-steps",
        "Remark 1, first item",
        "More local steps do not raise the participation error of the algorithm's bound: the growth like sqrt(tau) in "
        "(6) comes from the chosen step sizes",
        argument=rates.work_lowers_the_participation_error,
    ),
    Supplement(
        "kappa-of-the-pl-case",
        "Remark 3 and Appendix B.5",
        "The extra kappa of Lemmas B.8 and B.9 under the PL condition, and their stricter caps, are not needed",
        argument=envelope.ascent_gradient_without_concavity,
    ),
    Supplement(
        "quadratics-outside-assumption-3",
        "Assumptions 3 and 7",
        "Quadratics with different Hessians seldom satisfy Assumption 3 with finite constants, and no bilinear "
        "coupling with unbounded y satisfies Assumption 7",
        argument=envelope.different_hessians,
    ),
    Supplement(
        "residual-of-naive-weights",
        "Corollaries 1.1 and 2.1",
        "The distances of the maximizers and of the proximal points stay bounded along a run with naive weights",
        open="the paper neither bounds nor refutes it; for equal Hessians the first is constant",
    ),
    Supplement(
        "projected-ascent",
        "problems (8) and (9) against Theorems 1 and 4",
        "The theorems hold for projected ascent in the compact sets of the experiments",
        open="the analysis has no projection; whether its steps survive one has not been worked out",
    ),
)

WORDING: Sequence[Wording] = (
    Wording("sign-of-lemma-a.2", "Lemma A.2", "<grad g(y'), y' - y>", "<grad g(y'), y - y'>, as -y^2/2 shows"),
    Wording("text-of-lemma-a.5", "Lemma A.5", "quadratic growth and the PL inequality, stated for minimization",
            "the proofs use both for the maximization over y, so for -F(x, .)"),
    Wording("free-point-of-assumption-8", "Assumption 8", "<grad_y f(x, y'), y - y*(x)>, with y' free",
            "grad_y f(x, y): with y' free even -y^2/2 fails, at y = 1, y' = -1"),
    Wording("snapshot-for-the-first-sample", "Algorithm 1, the snapshot of Fed-Norm-SGDA+",
            "sent to the clients of the block's first round", "sent in every round, as clients drawn later need it"),
    Wording("lemma-b.9-of-itself", "Lemma B.9", "its hypotheses refer to itself; p_i for w_i; Assumption 5 for the f_i",
            "the conditions of Lemma B.4; w_i; Assumption 5 for the global function, as Remark 3 has it",
            (Quote("conditions of Lemma B.9", "Lemma B.9"), Quote("for the f_i", "Lemma B.9"))),
    Wording("second-problem-of-remark-6", "Remark 6", "both problems are labeled (P1)",
            "(P1) for n clients, (P2) for one node with a batch of n"),
    Wording("constants-of-49", "proof of Theorem 4, (49)", "the last line has eta_y alone and no Gx",
            "eta_x^2 and Gx^2 of Lemma C.3 belong there"),
    Wording("effective-steps-of-50", "proof of Theorem 4, (50)", "the second term lacks taueff", "taueff gamma_x"),
    Wording("power-of-i-2", "proof of Theorem 4", "I_2^(3/4)", "I_1^(7/4) I_2^(-1/4)"),
    Wording("heterogeneity-of-7", "(53) and (7)", "sigmaG in (53), none in (7)",
            "sqrt(sigmaG) in both: Corollary 2.2 needs the participation error to vanish with sigmaG"),
    Wording("rounds-over-steps", "Theorem 3", "T/tau rounds", "T, which counts rounds already"),
    Wording("maximizer-not-minimizer", "Theorem 3", "common global minimizer; one-point-convex maximization",
            "common maximizer; one-point-concave",
            (Quote("common global minimizer", "Theorem 3"), Quote("one-point-convex maximization", "Theorem 3"))),
    Wording("range-of-the-output", "Algorithm 1, last line, and the theorems", "x^(1), ..., x^(T); t in [T]",
            "the theorems average over t = 0, ..., T - 1"),
    Wording("kappa-of-corollary-1.2", "proof of Corollary 1.2", "no kappa", "the statement has it"),
    Wording("no-heterogeneity", "after Assumption 3, and (59)", "betaG = 0", "betaG = 1, its least value",
            (Quote("Most existing work assumes", "after Assumption 3"),)),
    Wording("symbols", "(5), Remark 6, C_w", "betaH; alpha_i", "betaG; a_i"),
    Wording("weights-of-the-sample", "(23) and (42)", "the mean of g_i over the sample", "the sum of n w_i g_i/P"),
    Wording("proximal-points-swapped", "(54) and the proof of Lemma C.1", "x~ and x- change places",
            "x~ for w, x- for p, as in (54)"),
    Wording("two-factors-f-w", "Theorem 4", "F_w with and without (n-P)/(n-1)", "with it, as in the statement"),
    Wording("gradients-of-2", "(2)", "G_(x,i) stacks grad_y for k = 0, ..., tau_i", "grad_x for k = 0, ..., tau_i - 1"),
    Wording("average-of-h", "Lemma B.5 and (44)", "E|sum w_i h_(x,i)|^2 without its time average",
            "its average over the rounds"),
    Wording("one-client", "special cases", "n = 1 in (P-1)/(n-1)", "c = 1 and d = 0 by convention"),
    Wording("dimensions-of-the-steps", "Theorem 4", "gamma_x, gamma_y, S without Lf, R, Gx and the gap",
            "(48) has dimensions, so they belong there"),
    Wording("cap-of-lemma-c.2", "Theorem 2", "the cap of Lemma C.2 is not listed",
            "plain local steps imply it, other coefficients do not"),
    Wording("cap-of-lemma-b.4", "Lemma B.5 and Theorem 1", "the cap of Lemma B.4 is not listed",
            "(f) does not imply it where betaL is large"),
    Wording("conditions-of-lemma-b.5", "Lemma B.5, (d) and (e)", "betaL^2 times dW; no square root in the first entry",
            "dW alone; (e) follows from the others"),
    Wording("vacuous-monotony", "Remark 7", "|a_i(k)|_1 <= |a_i(k)|_1", "|a_i(k)|_1 <= |a_i(k+1)|_1, or rather "
            "a^(j)(k) <= a^(j)(tau)"),
    Wording("figures", "Figures 2 and 8, (8)", "(Delta_x, Delta_y)/tau_i; Figure 8 complements Figure 8; sum over j of "
            "terms in i", "-Delta_x; Figure 5; one index",
            (Quote("Figure 8 complements Figure 8", "on Figure 8"),)),
)  # fmt: skip
