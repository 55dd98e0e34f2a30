"""Claims tested on instances: problems and runs whose two sides are exact numbers, drawn by each paper package.

An instance counts only if it meets the claim's assumptions and conditions. The evidence for survived is the worst ratio
of the measured left side to the bound, and the smallest mutation of each term that some instance would detect. For a
form that hides constants in an O(.), every constant is 1; it is refuted only where it is 0 and the left side is not.
"""
