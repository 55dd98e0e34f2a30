"""The proof of Das et al. (2022), step by step: Lemma 1, Lemma 2 in four forms, one round, the sum over the rounds.

A product of two vectors is a sum over the silos, a mean over a silo's clients and, in a round, over the local steps.
"""

from fedbounds.bounds.papers.tdcd.proof import drift, theorem

PROOFS = (*drift.PROOFS, *theorem.PROOFS)
