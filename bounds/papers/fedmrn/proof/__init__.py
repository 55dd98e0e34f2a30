r"""The proofs of Li et al. (2024), step by step; the bracket is a mean over everything random and over the clients.

Lemmas 4 and 5 have a chain for operators with a relative error and one for signed masks, whose error is $da^2-\|u\|^2$.
"""

from fedbounds.bounds.papers.fedmrn.proof import convex, iteration, nonconvex, remarks

PROOFS = (*iteration.PROOFS, *nonconvex.PROOFS, *convex.PROOFS, *remarks.PROOFS)
