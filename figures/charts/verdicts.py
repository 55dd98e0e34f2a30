"""The columns of a table of claims, and the verdict "not tested"."""

NOT_TESTED = "not tested at this scale"
COLUMNS = ("source", "paper", "claim", "measured", "comparisons", "verdict", "note")
