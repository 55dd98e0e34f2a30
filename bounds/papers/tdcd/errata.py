"""What Das et al. (2022) say that is false, how false, and what holds instead; what their errata lead to; wording."""

from fedbounds.bounds.audit.errata import Evidence, read_errata
from fedbounds.bounds.papers.tdcd import assumptions as said
from fedbounds.bounds.papers.tdcd import errata_algorithm as algorithm
from fedbounds.bounds.papers.tdcd import errata_rates as rates
from fedbounds.bounds.papers.tdcd.results import CAP, LEMMA_CAP

SMOOTH, BLOCK_SMOOTH = said.SMOOTH_OBJECTIVE, said.BLOCK_SMOOTH

EVIDENCE = {
    "average-over-the-first-iterates": Evidence(algorithm.average_over_the_first_iterates, (*said.AS_PRINTED, CAP)),
    "next-exchange-off-by-one": Evidence(algorithm.next_exchange, (SMOOTH,)),
    "last-step-is-averaged-away": Evidence(algorithm.last_step_is_lost, (*said.AS_PRINTED, CAP)),
    "largest-over-clients-alone": Evidence(algorithm.one_silos_constant, (said.ONE_BLOCK_SMOOTH, LEMMA_CAP)),
    "shards-are-noise-too": Evidence(algorithm.shards_are_noise, (SMOOTH, BLOCK_SMOOTH, algorithm.SAMPLING_NOISE, CAP)),
    "unequal-shards": Evidence(algorithm.unequal_shards, (SMOOTH, BLOCK_SMOOTH, algorithm.ALGORITHM, CAP)),
    "labels-returned-once": Evidence(
        algorithm.one_exchange_of_derivatives, (algorithm.ONE_EXCHANGE,), algorithm.one_exchange_a_step
    ),
    "order-of-local-steps": Evidence(
        rates.order_of_local_steps,
        (SMOOTH, BLOCK_SMOOTH, said.BOUNDED, said.UNBIASED_CLIENTS, CAP, rates.ONE_SILO, rates.BOUNDED_GRADIENTS),
    ),
    "rounds-that-remark-5-needs": Evidence(
        rates.rounds_that_remark_5_needs, (SMOOTH, BLOCK_SMOOTH, said.BOUNDED, said.UNBIASED_SILOS)
    ),
    "linear-in-the-silos": Evidence(rates.linear_in_the_silos, (rates.SAME_PROBLEM,)),
    "more-local-steps-in-time": Evidence(rates.time_on_slow_links, (rates.RESTING, CAP)),
}
ARGUMENTS = {
    "clients-do-not-add-noise": rates.clients_of_a_silo,
    "no-uniform-noise": rates.unbounded_noise,
    "remark-4-rounds": rates.root_t_rounds,
}
ERRATA, SUPPLEMENTS, WORDING = read_errata(__file__, EVIDENCE, ARGUMENTS)
