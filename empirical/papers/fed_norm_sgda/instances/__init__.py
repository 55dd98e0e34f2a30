"""Instances of Sharma et al. (2023): runs of Fed-Norm-SGDA and of Fed-Norm-SGDA+ whose two sides are exact."""
