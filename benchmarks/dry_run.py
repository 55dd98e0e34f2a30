"""The time that `fedbounds run --dry-run` says of a sweep, and that it takes: `python -m benchmarks.dry_run`.

Each sweep is estimated and then run, in new processes, one after the other; `--workers 2` in the last one. Both are
times of the clock, from the start of the command to its end, so that other work on the machine moves them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

PARTICIPATION = 'kind = "without-replacement"\nclients = 20\nparticipants = 5'
FEDAVG = '[algorithm]\nkind = "fedavg"\nlocal_step_size = 0.01\nlocal_steps = 5'
DIGITS = 'kind = "images"\ndataset = "digits"\nclients = 20'
GLYPHS = 'kind = "images"\ndataset = { kind = "glyphs", train = 6000, test = 1000 }\nclients = 20'


def sweep(head: str, problem: str, algorithm: str = FEDAVG, participation: str = PARTICIPATION) -> str:
    """A sweep as TOML."""
    rest = algorithm.partition("[vary]")
    vary = f"\n[vary]{rest[2]}" if rest[1] else ""
    return f"{head}\n[problem]\n{problem}\n[participation]\n{participation}\n{rest[0]}{vary}\n"


SWEEPS: dict[str, tuple[str, tuple[str, ...]]] = {  # name -> the file, and options
    "quadratics, closed form": (
        sweep("rounds = 20000\nseeds = 4", 'kind = "quadratic"\nclients = 20\ndimension = 50\nnoise = 0.1'),
        (),
    ),
    "MLP": (sweep("rounds = 1500\nseeds = 2\nrecord_every = 10", f'{DIGITS}\nnetwork = "mlp"'), ()),
    "CNN on glyphs": (sweep("rounds = 60\nrecord_every = 10", f'{GLYPHS}\nnetwork = "cnn-small"'), ()),
    "minimax": (
        sweep(
            "rounds = 1500\nseeds = 2",
            'kind = "minimax-quadratic"\nclients = 20\ndescent_dimension = 20\nascent_dimension = 10\nnoise = 0.1',
            '[algorithm]\nkind = "fed-norm-sgda"\nlocal_step_size = 0.01\nlocal_ascent_step_size = 0.01\n'
            "local_steps = 5\nserver_step_size = 0.05\nserver_ascent_step_size = 0.05",
        ),
        (),
    ),
    "TDCD": (
        sweep(
            "rounds = 400\nrecord_every = 10",
            'kind = "vertical"\ndataset = "breast-cancer"\nsilos = 2\nsilo_clients = 4\nnetwork = "mlp"\nbatch = 64',
            '[algorithm]\nkind = "tdcd"\nlocal_step_size = 0.01\nlocal_steps = 5',
            'kind = "full"\nclients = 8',
        ),
        (),
    ),
    "240 short runs, 2 workers": (
        sweep(
            "rounds = 30\nseeds = 20\nseeds_per_run = 1",
            f'{DIGITS}\nnetwork = "linear"',
            f'{FEDAVG}\n[vary]\n"algorithm.local_steps" = [1, 2, 3]\n'
            '"algorithm.local_step_size" = [0.001, 0.01, 0.03, 0.1]',
        ),
        ("--workers", "2"),
    ),
}


def main(names: Iterable[str] = SWEEPS) -> dict[str, tuple[float, float]]:
    """Prints a line for each sweep; returns the seconds said and taken."""
    found: dict[str, tuple[float, float]] = {}
    print("                           said  taken  said/taken  dry run")
    for name in names:
        text, options = SWEEPS[name]
        with TemporaryDirectory() as folder:
            path = Path(folder) / "sweep.toml"
            path.write_text(text, encoding="utf-8")
            command = [
                sys.executable,
                "-m",
                "fedbounds",
                "run",
                str(path),
                *options,
                "--out",
                str(Path(folder) / "out"),
            ]
            began = time.perf_counter()
            answer = subprocess.run([*command, "--dry-run", "--json"], check=True, capture_output=True, text=True)
            between = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            taken = time.perf_counter() - between
        found[name] = json.loads(answer.stdout)["estimate"]["elapsed"], taken
        said = found[name][0]
        print(f"{name:<26}{said:>5.1f}{taken:>7.1f}{said / taken:>12.2f}{between - began:>9.1f}", flush=True)
    return found


if __name__ == "__main__":
    main(sys.argv[1:] or SWEEPS)
