"""What Das et al. (2022) say that is false, how false, and what holds instead; what their errata lead to; wording."""

from __future__ import annotations

from collections.abc import Sequence

from fedbounds.bounds.audit.counterexample import Erratum, Quote, Supplement, Wording
from fedbounds.bounds.papers.tdcd import assumptions as said
from fedbounds.bounds.papers.tdcd import errata_algorithm as algorithm
from fedbounds.bounds.papers.tdcd import errata_rates as rates
from fedbounds.bounds.papers.tdcd.results import CAP, LEMMA_CAP

LITERAL, INFERENCE = "false under a literal reading", "false as an inference"
SMOOTH, BLOCK_SMOOTH = said.SMOOTH_OBJECTIVE, said.BLOCK_SMOOTH

ERRATA: Sequence[Erratum] = (
    Erratum(
        "average-over-the-first-iterates",
        where="Theorem 1, (15) and (85), the sum over t_0 = 0, ..., R - 1",
        claim="the average of E|grad f|^2 over the first R iterates is at most the right side of (15)",
        fails="The average is meant to be over the communication rounds, as the sentence before (85) says, and so the "
        "proof has it: it telescopes over the R synchronized iterates. The sum as it is printed counts iterations: the "
        "first R of all T iterates are earlier ones, where the gradient has hardly fallen yet.",
        instead="(15) for the average over the synchronized iterates t_0 = 0, Q, ..., (R-1) Q, and as well for that "
        "over all T iterations of the virtual average",
        under=(*said.AS_PRINTED, CAP),
        replay=algorithm.average_over_the_first_iterates,
        refutes=("theorem-1[printed]",),
        repair=("theorem-1[repaired]", "theorem-1[sharp:B3]", "theorem-1[repaired:all-iterations]"),
        degree=LITERAL,
        quotes=(
            Quote("averaging over all the communication rounds", "the sentence before (85)"),
            Quote("over T = QR local iterations", "the text, which suggests yet another average"),
        ),
    ),
    Erratum(
        "next-exchange-off-by-one",
        where="(58) to (85), t_0^+ = t_0 + Q - 1",
        claim="f(x^{t_0^+}) - f(x^{t_0}) is at most what Q steps give in (59)",
        fails="t_0 + Q - 1 is the last local step; up to there Q - 1 steps are taken, none if Q = 1, and (85) does not "
        "telescope.",
        instead="the same with t_0^+ = t_0 + Q in the objective; the sums over the steps stay",
        under=(SMOOTH,),
        replay=algorithm.next_exchange,
        repair=("theorem-1/8", "theorem-1/15b", "theorem-1/20b"),
        degree=LITERAL,
    ),
    Erratum(
        "last-step-is-averaged-away",
        where="Algorithm 1, line 32, and the text after (5)",
        claim="hub j averages its clients' theta^t_{k,j}, and (15) holds for what it gets",
        fails="theta^t is from before the local step t. With Q = 1 no model ever moves; with more steps the last of "
        "each round is lost.",
        instead="the average of theta^{t+1}, as (13) has it",
        under=(*said.AS_PRINTED, CAP),
        replay=algorithm.last_step_is_lost,
        repair=("theorem-1/8", "theorem-1[repaired]"),
        degree=LITERAL,
    ),
    Erratum(
        "largest-over-clients-alone",
        where="(10), Lmax as the maximum over k",
        claim="Lemma 2 holds with the largest constant of the clients of one silo",
        fails="Read as the largest constant of all clients of all silos, which (10) may mean and the proof uses, Lmax "
        "is enough. With the maximum over k alone, as (10) has it, the gradients of another silo drift by its own "
        "constant.",
        instead="(30) with the largest constant of all clients and silos, in their own blocks",
        under=(said.ONE_BLOCK_SMOOTH, LEMMA_CAP),
        replay=algorithm.one_silos_constant,
        refutes=("lemma-2[printed]",),
        repair=("lemma-2[repaired]", "lemma-2[sharp:growth]"),
        degree=LITERAL,
    ),
    Erratum(
        "shards-are-noise-too",
        where="Assumption 3, (8), for clients with fixed different shards",
        claim="sigma_j^2 is the noise of sampling a batch, so that (15) covers clients with fixed different shards",
        fails="If each client's part of a batch is a sample of all data, (8) holds and (15) as well. (8) fails for "
        "clients with fixed different shards, as those of the experiments are once they are split: what such a client "
        "samples is the gradient of its own shard, not of the objective. Where shards differ in curvature, local steps "
        "come to rest away from every stationary point, without any noise.",
        instead="the mean over a silo's clients need be unbiased, not each of them, and the differences between shards "
        "count as variance: then (15) holds as it stands",
        under=(SMOOTH, BLOCK_SMOOTH, algorithm.SAMPLING_NOISE, CAP),
        replay=algorithm.shards_are_noise,
        repair=("theorem-1[repaired]", "lemma-1[repaired]"),
        degree=INFERENCE,
    ),
    Erratum(
        "unequal-shards",
        where="Algorithm 1, the mean over a silo's clients, and (2)",
        claim="TDCD minimizes (2), which counts all samples alike",
        fails="All clients of a silo count alike in line 32, so that samples of small shards count for more.",
        instead="shards of equal sizes, or weights in proportion to them; the same for their parts of a batch",
        under=(SMOOTH, BLOCK_SMOOTH, algorithm.ALGORITHM, CAP),
        replay=algorithm.unequal_shards,
        repair=("theorem-1[repaired]",),
        degree=LITERAL,
    ),
    Erratum(
        "labels-returned-once",
        where="Remark 2, labels in one silo alone",
        claim="to send all embeddings to the silo with the labels, which returns derivatives, is mathematically "
        "equivalent, however often they come back",
        fails="How often derivatives come back is not specified. Once in every local step the remark is true. If they "
        "come back once a round, a client's local steps do not see that its own embedding moves.",
        instead="one exchange for every local step is equivalent, and takes Q times as many messages",
        under=(algorithm.ONE_EXCHANGE,),
        replay=algorithm.one_exchange_of_derivatives,
        argument=algorithm.one_exchange_a_step,
        degree="unstated but harmless",
    ),
    Erratum(
        "order-of-local-steps",
        where="Remark 3, N = 1",
        claim="for one silo the rate is that of local SGD (Yu et al. 2019) in the orders of Q, K_j and L",
        fails="Local SGD draws a batch for every step, TDCD one for all Q of them: its noise is eta Q L sigma^2, up "
        "to Q times as much. Nor does (15) fall with the clients K_j, as that of local SGD does.",
        instead="eta Q L sigma_j^2/K_j leads where the clients' noise is uncorrelated; a factor Q remains, and must",
        under=(SMOOTH, BLOCK_SMOOTH, said.BOUNDED, said.UNBIASED_CLIENTS, CAP, rates.ONE_SILO, rates.BOUNDED_GRADIENTS),
        replay=rates.order_of_local_steps,
        repair=("theorem-1[sharp:Bind]",),
        degree=INFERENCE,
    ),
    Erratum(
        "rounds-that-remark-5-needs",
        where="Remark 5",
        claim="with step sizes c/(Q sqrt(R)) the bound is that of (15), O(1/sqrt(R)), whatever R is",
        fails="(14) is not met unless R is at least 64 c^2 max(L, Lmax)^2; with fewer rounds the model may diverge.",
        instead="the same from that many rounds on",
        under=(SMOOTH, BLOCK_SMOOTH, said.BOUNDED, said.UNBIASED_SILOS),
        replay=rates.rounds_that_remark_5_needs,
        repair=("remark-5[explicit]", "remark-5[printed]"),
        degree="unstated but harmless",
    ),
    Erratum(
        "linear-in-the-silos",
        where="the text after Theorem 1",
        claim="the error grows linearly with N, through the sum of sigma_j^2 over the silos",
        fails="Only where every block has the same variance. A problem divided among more silos has the same sum: its "
        "noise is shared out.",
        instead="(15) depends on N through that sum alone, and Lmax does not grow when blocks are divided",
        under=(rates.SAME_PROBLEM,),
        replay=rates.linear_in_the_silos,
        repair=("theorem-1[repaired]",),
        degree=INFERENCE,
        quotes=(Quote("linearly with N", "the text after Theorem 1"),),
    ),
    Erratum(
        "more-local-steps-in-time",
        where="the text after Theorem 1, and Section 5 with its latency 3 tcomm + Q tcomp",
        claim="by (15), with eta reduced as Q grows, more local steps converge faster in time where links are slow",
        fails="At one small step size the text is right: (15) in a given time falls with Q up to a best Q. It does not "
        "follow where the step size is chosen for each Q, as in the experiments: in so many rounds (15) depends on eta "
        "Q alone, and a round of more steps takes longer, so that at its best step size the bound in a given time is "
        "least at Q = 1.",
        instead="one local step of size eta Q does at least as well as Q of size eta. That runs with Q > 1 are ahead "
        "for a while (15) does not say",
        under=(rates.RESTING, CAP),
        replay=rates.time_on_slow_links,
        repair=("limit/one-local-step-is-best-in-time", "wall-clock[repaired]"),
        degree=INFERENCE,
    ),
)

SUPPLEMENTS: Sequence[Supplement] = (
    Supplement(
        "clients-do-not-add-noise",
        "Section 5, a higher final loss with more clients",
        "More clients of a silo make each one's gradient noisier and leave their mean's noise where it is: it is no "
        "reason for a higher loss, though sigma_j^2 in (15) grows with K_j",
        argument=rates.clients_of_a_silo,
    ),
    Supplement(
        "no-uniform-noise",
        "Assumption 3, (9) for every model",
        "For least squares on batches of samples no sigma_j satisfies (9) at every model",
        argument=rates.unbounded_noise,
    ),
    Supplement(
        "remark-4-rounds",
        "Remark 4, one client in each silo",
        "For K_j = 1 (15) has the order in T of Liu et al.'s (2020) abstract, 1/sqrt(T) after sqrt(T) rounds, where "
        "batches are so large that S is at most of the order 1/sqrt(T)",
        argument=rates.root_t_rounds,
    ),
    Supplement(
        "remark-4-rate",
        "Remark 4, one client in each silo",
        "For K_j = 1 the rate is that of Liu et al. (2020) in Q, N and L",
        open="their theorem is not here: its step sizes, constants and conditions, and what its accuracy is of; their "
        "abstract alone is met in T",
    ),
)

WORDING: Sequence[Wording] = (
    Wording("one-iteration-more", "Algorithm 1", "for t = 0, ..., T", "t = 0, ..., T - 1; one more opens a round"),
    Wording("batch-of-each-silo", "Algorithm 1", "a batch is drawn for each silo", "one batch, the same in all silos"),
    Wording("last-exchange", "Algorithm 1", "t_0 is never assigned; t_0 < t, t_0 <= t", "last multiple of Q up to t"),
    Wording("no-step", "(14)", "0 <= eta", "0 < eta, or (15) divides by zero"),
    Wording("below", "Theorem 1", "under Assumption 2", "it is not used unless inf f replaces E f(x_T)"),
    Wording("empty-part", "(4)", "the mean over a client's part of a batch", "undefined where that part is empty"),
    Wording("history", "(18) to (21)", "given the iterates of one client", "given all clients' iterates"),
    Wording("brackets", "(53)", "(Q (1 + 2/Q)^Q - 1)/2", "Q ((1 + 2/Q)^Q - 1)/2, as (54) goes on"),
    Wording("product", "(64)", "A B = (A^2 + B^2 - (A + B)^2)/2", "the same with -A B on the left, as it is used"),
    Wording("mean-over-clients", "(40)", "the last sum lacks (1/K_j) sum_k", "with it"),
    Wording(
        "symbols",
        "(11), (36), (71), (85)",
        "zeta^t, a stray <=, E^{t_0} twice, sums without both ends",
        "zeta^{t_0}, none, E^{t_0} once, from 0 to R - 1",
    ),
    Wording("others-sum", "the sum of the others' embeddings", "Phi_j inside the sum over l", "Phi_l"),
    Wording("two-meanings", "Sections 3 and 4", "D is the number of features and of parameters", "two symbols"),
    Wording("clients-in-the-bound", "the contributions", "dependence on the number of clients", "(15) has no K_j"),
    Wording("concatenated", "Figure 1(b)", "embeddings are concatenated", "summed, as (3) has it"),
    Wording("figures-named", "Section 5.3.2", "Figures 5(a), (b) and 8(a), (b) for K = 20", "(c), (d)"),
    Wording("time-axis", "Figures 3 to 5", "t_Q, the latency of one round", "the simulated time"),
    Wording("shard-sizes", "Section 5", "shards of M/K samples", "no whole number for two of the three data sets"),
    Wording(
        "ten-classes",
        "Section 5, ModelNet40",
        "ten classes",
        "40: the 9,843 and 2,468 models are those of ModelNet40; ModelNet10 has ten classes, and fewer models",
        quotes=(Quote("ten classes", "Section 5, of ModelNet40"),),
    ),
    Wording("ranges", "Section 5, learning rates", "[larger, smaller]", "[smaller, larger]"),
)
