"""Claims of Wang & Ji (2024) that fail, each with a counterexample in exact arithmetic and what holds instead."""

from __future__ import annotations

from collections.abc import Sequence

from fedbounds.bounds.audit.counterexample import Erratum, Quote, Supplement, Wording
from fedbounds.bounds.papers.fedau import errata_descent as descent
from fedbounds.bounds.papers.fedau import errata_experiments as experiments
from fedbounds.bounds.papers.fedau import errata_weights as weights
from fedbounds.bounds.papers.fedau.assumptions import BERNOULLI, FEDAU, OBJECTIVE_WEIGHTS, ONE_STEP
from fedbounds.bounds.papers.fedau.lemmas import DESCENT_ERRATUM, GLOBAL_CAP, LOCAL_CAP
from fedbounds.bounds.papers.fedau.results import TWO_ROUNDS

ONE_ROUND = (*ONE_STEP, OBJECTIVE_WEIGHTS, LOCAL_CAP, GLOBAL_CAP)  # of Lemma B.3.3

ERRATA: Sequence[Erratum] = (
    Erratum(
        "dropped-cross-term",
        where="(B.3.8), step (a)",
        claim="The sums of a client's noise and of its gradients in a round are uncorrelated: E|sum 1 omega (a + V)|^2 "
        "= E|sum 1 omega a|^2 + E|sum 1 omega V|^2",
        fails="The gradient at a local model depends on the noise of the steps before it, in the same round and "
        "client; with two local steps or more the product has a mean, positive where the curvature is negative.",
        instead="the product is that of the noise and V - I grad F_n(x_t), since the noise is uncorrelated with what "
        "is known at x_t; Young's inequality and the averaged drift bound it (the sharp Lemma B.3.3)",
        under=ONE_ROUND,
        replay=descent.dropped_cross_term,
        refutes=("lemma-b.3.3/S10",),
        repair=("lemma-b.3.3/S10'", "lemma-b.3.3[sharp]"),
    ),
    Erratum(
        DESCENT_ERRATUM,
        where="Lemmas B.3.3 and B.5.1, (B.3.5) and (B.5.1)",
        claim="One round increases the objective by at most the right-hand side of (B.3.5), with 17/16 of the noise",
        fails="The noise of a round grows along negative curvature by up to (exp(2 tau) - 1)/(2 tau), tau = gamma L I, "
        "which is 1.0673 > 17/16 at the cap and many local steps; a client that seldom takes part makes it the leading "
        "term.",
        instead="(B.3.5) with 9/8 for 17/16 and 17/5 for 27/8 at the second moment of the weights; or as printed if "
        "gamma <= 1/(30LI) or I = 1. Theorem 2 stands with the constants of its proof: its cap gamma eta <= "
        "N/(27LIQ) leaves room",
        under=ONE_ROUND,
        replay=descent.descent_lemma,
        refutes=("lemma-b.3.3[printed]", "lemma-b.5.1[printed]", "lemma-b.3.3/B.3.5-printed"),
        repair=(
            "lemma-b.3.3[repaired]",
            "lemma-b.3.3[repaired:smaller-cap]",
            "lemma-b.3.3[repaired:I=1]",
            "lemma-b.5.1[repaired]",
            "theorem-2[explicit]",
        ),
        repeats="dropped-cross-term",
        quotes=(Quote("17 sigma^2/16 + 27 I deltatilde^2/8", "(B.3.5)"),),
    ),
    Erratum(
        "halved-initial-gap",
        where="from (B.4.3) to (B.4.4)",
        claim="(B.4.3), summed over the rounds, gives (B.4.4) with 4 H/(gamma etatilde I T)",
        fails="(B.4.3) leaves 1/8 of the squared gradient in every round, and a telescoping sum cannot halve its "
        "inverse.",
        instead="8 H/(gamma etatilde I T) by this route. (B.4.4) is true all the same, with 2.6 for 4: constant "
        "weights leave no gap, so the gradient keeps 1/2, not 1/4, before the other terms",
        under=("B.4.3", "h*"),
        replay=descent.halved_initial_gap,
        repair=("theorem-b.4.1[repaired]", "theorem-b.4.1[printed]", "theorem-b.4.1[sharp:no-gap]"),
        degree="false as an inference",
        quotes=(Quote("4 H/(gamma etatilde I T)", "(B.4.4)"),),
    ),
    Erratum(
        "mean-of-a-random-number-of-intervals",
        where="(B.6.8), step (a)",
        claim="The mean of omega_t is E S in every round t >= 1",
        fails="omega_t is the mean of a number of intervals that depends on them; before round K a long first interval "
        "cannot be complete.",
        instead="E omega_t = E S for t >= K, by exchangeability; (1 - (1-p)^t)/p - (t-1)(1-p)^t for 1 <= t < K",
        under=FEDAU,
        replay=weights.mean_of_random_count,
        refutes=("theorem-3/B.6.8a",),
        repair=("theorem-3/S23b", "theorem-3/S23f"),
    ),
    Erratum(
        "variance-of-a-random-number-of-intervals",
        where="(B.6.8), step (b)",
        claim="E(p omega_t - 1)^2 <= p^2 Var S/max{floor(t/K), 1} + (1-p)^(2K) in every round t >= 1",
        fails="The variance of a mean over a fixed number of intervals does not apply to a random one; before round K "
        "the weight may still be 1.",
        instead="that line for t >= K (given the intervals without their order, omega_t is the conditional mean of the "
        "first floor(t/K)), and 2K(1-p)/t + (1-p)^(2K) in every round t >= 1, which proves Theorem 3 as stated",
        under=FEDAU,
        replay=weights.variance_of_random_count,
        refutes=("theorem-3/B.6.8b",),
        repair=("theorem-3/S24a", "theorem-3/S26", "theorem-3[explicit]"),
        repeats="mean-of-a-random-number-of-intervals",
        quotes=(Quote("definition of variance", "(B.6.8), step (b)"),),
    ),
    Erratum(
        "cut-off-is-not-a-whole-number",
        where="Lemma B.7.1 and Corollary 4",
        claim="K = log_c T is a cut-off for Algorithm 2 for every T >= 2",
        fails="K is a number of rounds, at least 1, and nothing is said of rounding. log_c T is seldom whole, below 1 "
        "where T < c, and zero where all clients always participate (c is infinite).",
        instead="K = max{1, ceil(log_c T)}, with the same order: at most (4 + 7/log 2) R log^2(T)/T",
        under=(BERNOULLI, TWO_ROUNDS),
        replay=weights.cut_off_below_one,
        repair=("lemma-b.7.1[repaired]", "lemma-b.7.1[repaired:constant]", "corollary-4[repaired]"),
        degree="false under a literal reading",
        quotes=(Quote("K = log_c T", "Lemma B.7.1"), Quote("c = 1/(1 - min_n p_n)^2", "Corollary 4")),
    ),
    Erratum(
        "rarity-without-a-floor",
        where="Lemma B.7.1, last step",
        claim="log^2(T)/T <= C R log^2(T)/T for a numerical constant C, so that T^(-1) log^2 T is absorbed",
        fails="R = 1/log c has no floor: it tends to 0 as the least rate tends to 1. That R is bounded below is not "
        "said, and only this step of the proof needs it.",
        instead="the order R log^2(T)/T at the whole K: where R log T > 1 the other terms are absorbed, and where K = "
        "1 the weight error is the mean of (1 - p_n)^2 <= exp(-1/R)",
        under=(*FEDAU, TWO_ROUNDS),
        replay=weights.rarity_without_a_floor,
        repair=("lemma-b.7.1[repaired:constant]",),
        degree="unstated but harmless",
        quotes=(Quote("O(R log^2 T/T)", "(B.7.1)"),),
    ),
    Erratum(
        "random-second-moment",
        where="Theorem 2 and Corollary 4, Q",
        claim="Q = max_t (1/N) sum_n p_n (omega_t^n)^2 is a number that the step sizes may use",
        fails="For FedAU it depends on participation, also in later rounds: a step size chosen with it depends on the "
        "future, and (8) has it outside the expectation.",
        instead="any Q that bounds the second moment on every path; where all p_n < 1 the least one is min{K, max(T-1, "
        "1)}^2 times the mean of p_n, so with K = R log T the leading terms of (8) carry up to R log T. In the last "
        "two terms of Theorem 2 the mean of Q_t will do",
        under=FEDAU,
        replay=weights.random_second_moment,
        repair=("theorem-2[explicit]", "theorem-2[sharp:mean-Q]", "corollary-4[repaired]"),
        degree="false under a literal reading",
        quotes=(Quote("Q = max_(0 <= t <= T-1) (1/N) sum_n p_n (omega_t^n)^2", "Theorem 2"),),
    ),
    Erratum(
        "rounds-per-participation",
        where="Section 3",
        claim="T divided by the number of participations equals the average participation interval",
        fails="The rounds after the last participation belong to no interval yet.",
        instead="it does if the client takes part in round T - 1; else the average is (T - s)/M with s rounds since",
        under=("record",),
        replay=weights.rounds_per_participation,
        argument=weights.last_round_counts,
        degree="false under a literal reading",
    ),
    Erratum(
        "rate-above-one",
        where="(C.6.1)",
        claim="p_n = <kappa_n, q>/lambda, lambda = 1/(C mu), raised to 0.02, is a probability",
        fails="With a hundred classes and mu = 0.1 it is 10 <kappa_n, q>, which exceeds 1 where a client holds much of "
        "a favored class; no cap is mentioned.",
        instead="min{max{p_n, 0.02}, 1}; for ten classes and mu <= 0.1 the cap is idle",
        under=("C.6.1",),
        replay=experiments.rate_above_one,
        argument=experiments.capped_rates,
        degree="false under a literal reading",
        quotes=(Quote("p_n = (1/lambda) <kappa_n, q>, lambda = 1/(C mu)", "(C.6.1)"),),
    ),
    Erratum(
        "spread-over-clients",
        where="Appendix D.3, about Table D.3.1 (FedAU with K to infinity, test accuracy)",
        claim="FedAU reduces the spread over the clients of loss, training and test accuracy",
        fails="Without a cut-off its spread of test accuracy, 11.7, is above 11.6, that of averaging the participants; "
        "the table does not say how much of a difference is chance.",
        instead="with K = 50 it does, in every column",
        under=("Table D.3.1",),
        replay=experiments.spread_of_test_accuracy,
        argument=experiments.spread_with_cut_off,
        degree="false under a literal reading",
    ),
    Erratum(
        "rare-participation",
        where="Appendix D.6, about Table D.6.1 (mean rate 0.1, test accuracy)",
        claim="Average participating and average all are better than FedVarp, MIFA and known statistics",
        fails="At mean rate 0.1 MIFA's test accuracy, 72.5 +- 1.5, is above average all, 71.5 +- 0.9, and equal to "
        "average participating: means alone, the differences are within the deviations.",
        instead="FedAU is best there; both averages are above FedVarp and known statistics",
        under=("Table D.6.1",),
        replay=experiments.mifa_at_mean_rate_one_tenth,
        argument=experiments.fedau_first_at_mean_rate_one_tenth,
        degree="false under a literal reading",
    ),
)

SUPPLEMENTS: Sequence[Supplement] = (
    Supplement(
        "option-1-is-vacuous-for-fedau",
        "Assumption 5, Option 1, beside Corollary 4",
        "With K >= 2, T > K and all p_n < 1 FedAU's own weights never meet Option 1, so Corollary 4 then speaks under "
        "Option 2 alone. The paper does not say otherwise: Option 1 is an alternative, for any weights",
        argument=weights.nobody_comes,
    ),
    Supplement(
        "sampling-without-replacement",
        "Appendix A.3, beside the rates it compares with",
        "A.3 is about independent participation with p_n = S/N, and says that the settings differ. For S of N clients "
        "without replacement the variance of the update is at most N/(N-1) times as large, so the order stays",
        argument=experiments.sampling_variance,
    ),
    Supplement(
        "cyclic-start-of-the-public-code",
        "Appendix C.6, cyclic participation: the authors' public code, not the paper",
        "The code starts every client inactive, with a uniform number of rounds left of its inactive part, so few are "
        "active at first and nearly all at once later; an offset that is uniform over the whole cycle is stationary",
        argument=experiments.cyclic_starts,
    ),
    Supplement(
        "fixed-cut-off-is-biased",
        "Section 5, K = 50",
        "With K = 50 FedAU weights a client of rate 0.02 by 31.8 and not by 50 in the limit, and its squared bias does "
        "not fall below 0.1326",
        argument=weights.fixed_cut_off,
    ),
    Supplement(
        "why-known-statistics-lose",
        "Section 5, about Table 1",
        "FedAU beats known participation statistics because its weights adapt to the sample path",
        open="the tables cannot tell: with K = 50 FedAU also weights rare clients by 36 percent too little, which "
        "means less variance, and on three of four data sets known statistics ran with a smaller local step size",
    ),
)

WORDING: Sequence[Wording] = (
    Wording("missing-factor", "(B.3.10)(b)", "the first summand has no factor I", "I times it, as in (c)"),
    Wording("equation-number", "end of the proof of Lemma B.3.3", "(B.3.9) into (B.3.6)", "(B.3.10) into (B.3.6)"),
    Wording(
        "variance-is-a-bound",
        "(B.3.8)(b)",
        "the variance of the noise equals sigma^2",
        "it is at most sigma^2 (Assumption 2)",
    ),
    Wording(
        "misplaced-root",
        "Section 5",
        "the standard deviation of the participations is 0.0196 = 14",
        "sqrt(10^4 * 0.0196) = 14",
        quotes=(Quote("sqrt(T p_n (1 - p_n)) = 0.0196 = 14", "Section 5"),),
    ),
    Wording("unused-variables", "Algorithms 1 and 3", "t_0 <- 0, u <- 0", "neither is used"),
    Wording("indices-swapped", "Section 3", "omega_n^t", "omega_t^n", quotes=(Quote("omega_n^t", "Section 3"),)),
    Wording(
        "identity-function",
        "Section 3",
        "the identity function of participation",
        "the indicator of participation",
        quotes=(Quote("identity function", "Section 3"),),
    ),
    Wording(
        "statistics-in-the-step-sizes",
        "Corollary 4",
        "unknown participation statistics",
        "K and gamma eta need min_n p_n and Q, besides the gap, L, delta and sigma; Theorem 3 is vacuous for K to "
        "infinity",
    ),
    Wording(
        "experiments-fix-the-cut-off",
        "Section 5",
        "K = 50",
        "for min_n p_n = 0.02 the corollary's K, rounded up, is 189, 228 and 246 for T = 2000, 10000 and 20000",
    ),
    Wording(
        "optimal-solution",
        "Abstract",
        "FedAU converges to an optimal solution",
        "to a stationary point of f: Theorem 2 and Corollary 4 bound the average squared gradient norm, and no F_n "
        "need be convex",
        quotes=(Quote("converges to an optimal solution", "abstract"),),
    ),
    Wording(
        "descent-without-step-sizes",
        "Lemma B.5.1",
        "no condition on the step sizes is stated",
        "the caps of Lemma B.3.3, gamma <= 1/(4 sqrt(15) L I) and gamma eta <= 1/(2LI), which its proof inherits",
    ),
    Wording(
        "large-enough-rounds",
        "Theorem B.4.1",
        "T is sufficiently large",
        "large enough also for both caps of Lemma B.3.3, with the normalized step sizes",
    ),
    Wording("corollary-without-assumptions", "Corollary 4", "no assumptions named", "Assumptions 1-5 of Theorem 2"),
    Wording(
        "rounds-without-participants",
        "baselines",
        "average participating divides by the number of participants",
        "a round without any leaves the model as it is",
    ),
    Wording(
        "missing-settings",
        "Section 5 and Appendix C",
        "the number of local steps and the size of a minibatch are not given",
        "I = 5 and 16 in the official code",
    ),
    Wording(
        "floor-raises-the-mean",
        "(C.6.1)",
        "the rates have mean mu",
        "before they are raised to 0.02; afterwards the mean is above mu",
    ),
    Wording(
        "better-than-known-statistics",
        "Section 5, about Table 1",
        "FedAU is better than known statistics",
        "for K = 50, with a tie in SVHN training under cyclic participation; without a cut-off it is below in that "
        "column and in CIFAR-100 test, cyclic",
    ),
)
