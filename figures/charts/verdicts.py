"""The words of a table of claims, for those who write it and those who read it."""

NOT_TESTED = "not tested at this scale"
COLUMNS = ("source", "paper", "claim", "measured", "comparisons", "verdict", "note")
