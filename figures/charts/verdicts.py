"""The verdicts on claims, and the columns of their table."""

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = "reproduced", "not reproduced", "inconclusive"
NOT_TESTED = "not tested at this scale"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE, NOT_TESTED)
COLUMNS = (
    "source", "paper", "claim", "measured", "comparisons", "verdict", "note", "rounds", "plateau", "rounds needed",
    "seeds", "p", "detectable", "core seconds",
)  # fmt: skip
