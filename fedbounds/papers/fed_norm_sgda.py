"""Fed-Norm-SGDA, minimax problems (Sharma et al. 2023)."""

from fedbounds.bounds.papers.fed_norm_sgda import RESULTS as RESULTS
from fedbounds.bounds.papers.fed_norm_sgda.errata import ERRATA as ERRATA
