"""Claims of Wang & Ji (2022) that fail, each with a counterexample in exact arithmetic and what holds instead."""

from __future__ import annotations

from collections.abc import Sequence

from fedbounds.bounds.audit.counterexample import Erratum, Quote, Supplement, Wording
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
from fedbounds.bounds.theory.assumptions import MARTINGALE, SMOOTH, UNBIASED

STATED = (SMOOTH, UNBIASED, PARTICIPATION, COHORT, WINDOW, WEIGHTS, NORM, BOUNDED_BELOW, *noise.CAPS)  # of Theorem 3.1
INDEPENDENT = (BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, INDEPENDENT_ROUNDS, WEIGHTS)
STRONGLY_MIXING = (BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, MIXING, WEIGHTS)
SAMPLED = (UNBIASED_SAMPLING, INDEPENDENT_ROUNDS, WEIGHTS)

ERRATA: Sequence[Erratum] = (
    Erratum(
        "suprema-at-different-rounds",
        where="Proposition 4.1",
        claim="There are beta and nu with beta^2 + nu^2 <= d^2 that satisfy (5) and (6)",
        fails="(5) and (6) are suprema over rounds; the identity (11) bounds their sum only in one and the same round.",
        instead="beta <= d and nu <= d separately; with the proof's constants the factor of d^2/T in Corollaries 4.3 "
        "and 4.8 is 1 + 7/(8 P^2), not 1 (in Corollary 4.3 the sharp constants leave room for the 1)",
        under=(BOUNDED_DIVERGENCE, WEIGHTS),
        replay=windows.suprema_at_different_rounds,
        refutes=("proposition-4.1[printed]",),
        repair=("proposition-4.1[repaired]", "corollary-4.3[repaired]", "corollary-4.8[repaired]"),
        quotes=(Quote("beta^2 + nu^2 <= d^2", "Proposition 4.1"),),
    ),
    Erratum(
        "per-client-is-not-all-clients",
        where="Proposition 4.7, from (17) to (15)",
        claim="With probability 1 - c, (17) holds for all clients at once, as (15) needs",
        fails="(17) is Hoeffding's inequality for one client; (15) sums over all clients, and no union bound is made.",
        instead="for weights whose rounds are independent (clients together) the largest left-hand side of (7) over "
        "all points is, in one window, at most d^2 (sqrt(N-1) + sqrt(2 ln(1/c)))^2/P with probability 1 - c, by "
        "bounded differences. That is below Proposition 4.7's own constant for N >= 4, so for one window the "
        "proposition holds as printed; a union over the windows gives all of them",
        under=(*SAMPLED, "0 < c < 1"),
        replay=windows.per_client_is_not_all_clients,
        repair=(
            "proposition-4.7[repaired:one-window]",
            "proposition-4.7[repaired:own-constant]",
            "proposition-4.7[repaired:all-windows]",
        ),
        degree="unstated but harmless",
    ),
    Erratum(
        "one-window-is-not-all-windows",
        where="Proposition 4.7, with probability 1 - c",
        claim="With probability 1 - c, (7) holds with N^2 d^2 ln(2/c)/(2P)",
        fails="Hoeffding's inequality is per client and per window; (7) asks for all windows at once and no union "
        "bound is made.",
        instead="the average over the windows, which is all that the proof of Theorem 3.1 uses, is bounded with "
        "probability 1 - c by N^2 d^2 Var/c (Markov) or by a sub-Gaussian bound with ln(1/c); and all windows at once, "
        "where the rounds are independent for all clients together, by bounded differences with ln(T/(cP))",
        under=INDEPENDENT,
        replay=windows.one_window_is_not_all_windows,
        refutes=("proposition-4.7[printed:probability]",),
        repair=(
            "proposition-4.7[repaired:probability]",
            "proposition-4.7[repaired:markov]",
            "proposition-4.7[repaired:all-windows]",
        ),
        degree="false under a literal reading",
        quotes=(Quote("the final result then also holds with that probability", "Section 4.2"),),
    ),
    Erratum(
        "chebyshev-for-one-window",
        where="Proposition 4.6, with probability 1 - c",
        claim="With probability 1 - c, (7) holds with N^2 d^2 upsilonhat^2/(c P)",
        fails="Chebyshev's inequality is per client and per window; (7) asks for all windows at once and no union "
        "bound is made. (Independent rounds are mixing, with upsilonhat = upsilon.)",
        instead="the same constant, with the exact variance, for the average over the windows (Markov)",
        under=STRONGLY_MIXING,
        replay=windows.chebyshev_for_one_window,
        refutes=("proposition-4.6[printed:probability]",),
        repair=("proposition-4.6[repaired:probability]",),
        degree="false under a literal reading",
        quotes=(Quote("the final result then also holds with that probability", "Section 4.2"),),
        repeats="one-window-is-not-all-windows",
    ),
    Erratum(
        "vanishing-long-run-variance",
        where="Proposition 4.6, in expectation, where upsilonhat = 0",
        claim="As P grows, delta^2 = N^2 d^2 upsilonhat^2/P satisfies (7) in expectation",
        fails="upsilonhat may be zero for weights that vary, where the covariances cancel the variance; delta = 0 is "
        "claimed, while the window mean has variance 1/(8 P^2) > 0.",
        instead="upsilonhat > 0 as a hypothesis, for the limit; or at any whole P the exact variance of the mean",
        under=STRONGLY_MIXING,
        replay=windows.vanishing_long_run_variance,
        refutes=("proposition-4.6[printed]",),
        repair=("proposition-4.6[repaired]",),
        degree="unstated but harmless",
    ),
    Erratum(
        "ergodic-but-not-uniformly",
        where="Proposition 4.4",
        claim="Mean-ergodicity for every t_0 gives one delta(P) -> 0 that satisfies (7) in expectation for all t_0",
        fails="The convergence need not be uniform in t_0.",
        instead="N^2 d^2 times the largest variance over the windows actually used",
        under=(BOUNDED_DIVERGENCE, UNBIASED_SAMPLING, ERGODIC, WEIGHTS),
        replay=windows.ergodic_but_not_uniformly,
        refutes=("proposition-4.4[printed]",),
        repair=("proposition-4.4[repaired]",),
        degree="false under a literal reading",
    ),
    Erratum(
        "lost-weight-variance",
        where="Table 1, independent participation with probability 1 - c",
        claim="At Corollary 4.8's P, 6 delta^2 of Proposition 4.7 is of order ln(2/c)/sqrt(SIT) with a factor that S "
        "does not change",
        fails="At Corollary 4.8's P the term is 3 d^2 ln(2/c)/(upsilon^2 sqrt(NIT)). 1/upsilon^2 = S N^2/(N - S) for S "
        "of N clients, so it is none of the variables that the table leaves out: the term grows with S.",
        instead="at that P, all windows at once have 6 d^2 (1 + sqrt(2 ln(T/(cP)))/(N upsilon))^2/sqrt(NIT) with "
        "probability 1 - c, by bounded differences: for S <= N/2 of order ln(T/(cP))/sqrt(NIT). Their average has "
        "6 d^2/(c sqrt(NIT)), by Markov's inequality",
        under=(*SAMPLED, NORM, BOUNDED_DIVERGENCE, "0 < c < 1"),
        replay=rates.lost_weight_variance,
        repair=("proposition-4.7[sharp:all-windows]", "proposition-4.7[repaired:markov]"),
        degree="false under a literal reading",
        quotes=(Quote("other variables", "note of Table 1, which ignores them"),),
    ),
    Erratum(
        "step-size-with-a-unit",
        where="Corollary 3.3",
        claim="eta = 12 P sqrt(LIF)/rho is a number, so that it is the same in every unit of f",
        fails="eta multiplies a displacement, so it is a number, but this one changes with the unit of f; 1 + sigma^2 "
        "adds a number to a squared gradient.",
        instead="eta = 12 s P sqrt(LIF)/rho and 8/s + 4 s sigma^2 with a scale s of unit x/f; s = 1/sigma is "
        "Corollary 3.2",
        under=(NORM, "T >= 4LIP^2F/rho^2", "P <= T/2"),
        replay=rates.step_size_with_a_unit,
        repair=("corollary-3.3[repaired:s]",),
        degree="units",
    ),
    Erratum(
        "interval-is-not-a-whole-number",
        where="Corollary 4.8",
        claim="P = upsilon^2 N^(5/2) sqrt(IT), made whole, meets Corollary 3.3's condition whenever I meets its cap",
        fails="P is a number of rounds. Rounded up, it breaks the condition, in which T has canceled and left no "
        "slack; rounded down, the window divergence is above 6 d^2/sqrt(NIT). It may also be below 1.",
        instead="any whole P >= 1, with T >= 2P and T >= 4LIP^2F/rho^2 checked directly",
        under=(*SAMPLED, NORM, "I <= rho/(2 upsilon^2 N^(5/2) sqrt(LF))", "T >= 4 upsilon^4 I N^5"),
        replay=rates.interval_is_not_a_whole_number,
        repair=("corollary-4.8[repaired:integer-P]",),
        degree="unstated but harmless",
    ),
    Erratum(
        "earlier-rounds-in-lemma-c.2",
        where="Proof of Lemma C.2, the unrolled display after (C.12)",
        claim="(C.9) unrolled over a window has S_t of the current round in every term",
        fails="The recursion passes through earlier rounds, whose sums of squared weights may be smaller.",
        instead="the Lemma as stated: the sum over the window is below 2.76 IP, not 3 IP, and the slack covers "
        "1 - S_t <= 1 for P >= 2; for P = 1 no round is crossed",
        under=(NORM, noise.CAPS[0]),
        replay=noise.earlier_rounds_in_lemma_c2,
        repair=("lemma-c.2[printed]",),
        argument=noise.lemma_c2_has_slack,
        degree="false under a literal reading",
    ),
    Erratum(
        "noise-with-memory",
        where="Theorem 3.1, Assumption 2",
        claim="Theorem 3.1 with E[g_n(x) | x] = grad F_n(x), that is, noise of mean zero given the current point",
        fails="Mean zero given the current point does not make the noise of different steps uncorrelated.",
        instead=f"Theorem 3.1 where {MARTINGALE.statement} (assumption {MARTINGALE.name})",
        under=STATED,
        replay=noise.noise_with_memory,
        repair=("theorem-3.1[explicit]",),
        degree="false under a literal reading",
    ),
)

SUPPLEMENTS: Sequence[Supplement] = (
    Supplement(
        "independent-noise-is-needed",
        "Theorem 3.1 and Lemma C.1 (b)",
        "Theorem 3.1 needs the independence of the clients' noise that Lemma C.1 (b) states: with noise that all "
        "clients share its bound is exceeded",
        argument=lambda: noise.shared_noise().argument("All its other hypotheses hold here."),
    ),
    Supplement(
        "exogenous-participation-is-needed",
        "Theorem 3.1 and Section 3",
        "Theorem 3.1 needs weights that do not depend on the gradient noise, over which alone Section 3 takes "
        "expectations: clients chosen by their loss or update are not covered",
        argument=lambda: noise.participation_follows_the_noise().argument("All its other hypotheses hold here."),
    ),
    Supplement(
        "variance-at-a-finite-window",
        "Proposition 4.6, as P grows",
        "At a finite P the variance of a mean weight is (1/P)[g_0 + 2 sum_p (1 - p/P) g_p], which for a chain of "
        "negative correlation is above upsilonhat^2/P at every P; their ratio tends to 1",
        argument=windows.finite_window_against_its_limit,
    ),
    Supplement(
        "smaller-of-two-tails",
        "after Proposition 4.7, where upsilonhat is left aside",
        "With upsilonhat, the smaller bound with probability 1 - c is Chebyshev's for S = 10 of N = 250 clients and "
        "every c >= 7.6e-5",
        argument=rates.smaller_of_two_tails,
    ),
    Supplement(
        "cap-free-of-rounds",
        "Corollary 4.8, the cap on I",
        "The cap on I does not involve T: with I >= 1 it asks for sqrt(LF) <= rho/(2 upsilon^2 N^(5/2)), which is "
        "4.17e-4 for S = 10 of N = 250 clients. Forms repaired:integer-P and repaired:any-I do without it",
        argument=rates.cap_free_of_rounds,
    ),
    Supplement(
        "speed-up-ends-at-the-cap",
        "Remark after Corollary 4.8, which says that the left-hand side scales too",
        "That divided out, the first term at the largest scale that admits I is 16 upsilon^2 N^(5/2) LF sqrt(I/T): no "
        "speed-up in I beyond the cap",
        argument=rates.speed_up_ends_at_the_cap,
    ),
    Supplement(
        "toy-cycle-rests-near",
        "Appendix B, convergence to a neighborhood of x*",
        "The amplified iteration converges to a point at distance of order gamma from x*, 0.0342 for gamma = 0.05, the "
        "same for all eta",
        argument=noise.toy_center_is_near,
    ),
    Supplement(
        "one-window-of-three-clients",
        "Proposition 4.7, one window",
        "N^2 d^2 ln(2/c)/(2P) bounds (7) for one window with probability 1 - c for N = 3 clients, each independent "
        "over rounds",
        argument=windows.three_clients_each_independent,
    ),
    Supplement(
        "one-window-of-clients-independent-one-by-one",
        "Proposition 4.7, one window",
        "N^2 d^2 ln(2/c)/(2P) bounds (7) for one window with probability 1 - c for N >= 4 clients, each independent "
        "over rounds but not together",
        open="neither a proof nor a counterexample: Hoeffding with a union over sets of clients is too large by a "
        "constant, Markov's inequality covers only c >= 0.14 for N = 4; together independent is proved "
        "(proposition-4.7[repaired:own-constant]), and N <= 3 is argued",
    ),
    Supplement(
        "ergodic-limit",
        "Table 1, ergodic participation",
        "Under mean-ergodicity the bound of Corollary 3.2 tends to 0 if P grows with T such that T/P tends to infinity "
        "slowly enough",
        argument=windows.ergodic_from_a_fixed_start,
    ),
)

WORDING: Sequence[Wording] = (
    Wording(
        "order-of-the-two-divergences",
        "after (11)",
        "the two terms of (11) are the left-hand sides of (5) and (6), in this order",
        "of (6) and (5)",
        (Quote("respectively", "after (11)"),),
    ),
    Wording(
        "gradients-missing",
        "(12)",
        "the identity is written for F_n - f, and (13) uses it for gradients",
        "grad F_n - grad f; differentiating (12) gives it",
    ),
    Wording(
        "scaled-objective-without-a-client", "Remark after Corollary 4.8", "F' without a client's index", "F_n' = a F_n"
    ),
    Wording(
        "mean-that-cannot-vary",
        "Sections 4.1 and 4.2",
        "mu_{t_0} may change with t_0",
        "mu_{t_0} = 1/N, because the weights of a round sum to 1",
        (Quote("possibly depends on t_0", "Section 4"),),
    ),
    Wording(
        "one-variance-for-all-clients",
        "Lemma 4.5",
        "upsilonhat is tacitly the same for all clients",
        "the largest over the clients",
    ),
    Wording(
        "index-after-the-sum",
        "(C.14)-(C.16)",
        "the index t of sum_n (q_t^n)^2 is left free after the sum over t",
        "1 - sum_n (q_t^n)^2 is at most 1 in every round, which is what is used",
    ),
    Wording("indices-swapped", "discussion of Assumption 3'", "q_n^t", "q_t^n"),
    Wording(
        "symbols-used-twice",
        "Appendix C.1 and Section 5",
        "m is the dimension and an index, d the divergence and a dimension, M a number of summands and of oracle calls",
        "one symbol for each",
    ),
    Wording(
        "weights-that-do-not-sum-to-one",
        "footnote 1",
        "weights with another sum are a learning rate for each round",
        "so they are where the sum is positive, but Theorem 3.1 does not cover a rate that changes from round to round",
    ),
    Wording(
        "grid-edge-optima",
        "Table D.1",
        "the best learning rates of a grid search",
        "seven of the eight lie on the boundary of their grid (only CIFAR-10 without amplification is inside), so the "
        "best may lie outside it",
    ),
    Wording(
        "approximately-regularized",
        "Section 6, periodic availability",
        "regularized participation",
        "approximately so: 50 clients are available and 10 take part, so a permutation lasts 5 rounds, and a first "
        "slot of, say, 37 rounds is not a multiple of 5; the mean weights over 500 rounds are then equal only if a "
        "permutation is resumed where it stopped",
    ),
)
