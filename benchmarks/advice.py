"""The time of advice for a setting: `python -m benchmarks.advice`, or with the names of some settings.

Each is one request with the usual ranges of whole numbers, for one paper and for all; the clock is the processor's, of
one thread. The first request of a process also reads and compiles the papers' results, so each is made twice.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.empirical.monitoring.advise import advise

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
GAME: dict[str, Any] = {
    "setting": "non-convex, strongly concave, uniform sampling, bounded heterogeneity, bounded variance, "
    "different local steps",
    "target": 1.0,
    "measure": "squared gradient norm of the envelope of the weighted objective",
    "constants": {
        "smoothness": 1.0, "strong_concavity": 0.5, "gradient_noise": 1.0, "gradient_noise_growth": 0.0,
        "weighted_heterogeneity": 1.0, "heterogeneity_growth": 1.0, "clients": 10, "participating_clients": 5,
        "fed-norm-sgda": {"w": 0.1, "p": 0.1}, "initial_gap": 2.0, "initial_dual_gap": 1.0,
    },
    "cost": {"round": 1.0, "gradient": 0.1},
}  # fmt: skip
SETTINGS: dict[str, tuple[dict[str, Any] | Path, tuple[str | None, ...]]] = {  # with the papers that are asked
    "rates": (EXAMPLES / "advise-rates.toml", ("fedau", None)),
    "log": (EXAMPLES / "advise-log.toml", ("arbitrary-participation", None)),
    "tiers": (EXAMPLES / "advise-tiers.toml", ("tdcd", None)),
    "minimax": (GAME, ("fed-norm-sgda", None)),
    "never": ({**read_toml(EXAMPLES / "advise-rates.toml"), "target": 0.01}, ("fedau",)),
}


def timed(setting: dict[str, Any] | Path, paper: str | None) -> tuple[float, int]:
    """Processor time, and how many results reach the target."""
    start = time.process_time()
    found = advise(setting, paper=paper)
    return time.process_time() - start, sum(one.status == "reached" for one in found.results)


def main() -> None:
    """Prints the table."""
    print(f"{'setting':10}{'paper':26}{'first, s':>10}{'again, s':>10}{'reached':>10}")
    for name in sys.argv[1:] or SETTINGS:
        setting, asked = SETTINGS[name]
        for paper in asked:
            first, again = timed(setting, paper), timed(setting, paper)
            print(f"{name:10}{paper or 'all':26}{first[0]:10.2f}{again[0]:10.2f}{again[1]:10}", flush=True)


if __name__ == "__main__":
    main()
