"""The court of instances: claims on problems whose two sides are exact numbers, which each paper's room draws.

Each claim meets random instances, each first shown to meet its assumptions and conditions; one that does not is not
covered and counts for nothing. The evidence for survived is the worst ratio of the measured left side to the bound and
the smallest planted error, term by term, that some instance would have exposed. A violation is refuted, with all
numbers of the instance. A form that hides constants in an O(.) is measured with every constant 1: the worst ratio is
then the smallest constant that would do here, and refutes nothing unless it is infinite, where the form is 0.
"""
