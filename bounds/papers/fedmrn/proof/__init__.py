r"""The proofs of Li et al. (2024), step by step, with what they need besides what the paper states.

The bracket is a mean over everything random and over the clients, as the theorems need no more; (17) for a client of
its own is false. Each of Lemmas 4 and 5 has a chain for operators with a relative error and one for FedMRN's own signed
masks, whose error is $da^2-\|u\|^2$ exactly.
"""

from fedbounds.bounds.papers.fedmrn.proof import convex, iteration, nonconvex, remarks

PROOFS = (*iteration.PROOFS, *nonconvex.PROOFS, *convex.PROOFS, *remarks.PROOFS)
