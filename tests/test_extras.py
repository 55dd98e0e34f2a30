"""A core without extras works; a command that needs one says which, in one line."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from fedbounds.bounds.errors import EXTRA_OF, NEEDED
from tests.command_line import run, run_apart

ROOT = Path(__file__).resolve().parent.parent
SWEEP = "examples/sweep.toml"
CONSTANTS = "L=1 F=5 I=2 P=2 T=8 gamma=1/48 eta=6 rho=0.75 nu=2 beta=0.5 delta=0 sigma=0.5"
THEOREM = "arbitrary-participation/theorem-3.1"
# what is not there, the command, its status, what it says
WITHOUT = [
    ("torch", f"run {SWEEP} --out nowhere", 2, "torch is not installed; run: pip install 'fedbounds[empirical]'"),
    ("torch", "figure fedau/figure-1 --out nowhere", 2, "fedbounds[empirical]"),
    ("torch", "demo --out nowhere", 2, "fedbounds[empirical]"),
    ("torch", "schema", 2, "fedbounds[empirical]"),
    ("sklearn", "figure digits --out nowhere.png", 2, "fedbounds[empirical]"),
    (
        "distributed",
        f"run {SWEEP} --cluster localhost:8786 --out nowhere",
        2,
        "distributed is not installed; run: pip install 'fedbounds[cluster]'",
    ),
    ("PEPit cvxpy clarabel", "figure fedmrn/tightness --out nowhere.png", 2, "fedbounds[worst-case]"),
    ("PEPit cvxpy clarabel", "figure tdcd/famil --out nowhere.png", 2, "did you mean family"),
    ("z3", "audit fedau/theorem-1/", 2, "fedbounds[audit]"),
    ("flint", "audit fedau/theorem-1/", 2, "fedbounds[audit]"),
    ("torch sklearn xarray pandas PIL z3 flint hypothesis flwr", f"eval {THEOREM} {CONSTANTS}", 0, "guarantee"),
    ("torch sklearn xarray pandas PIL z3 flint hypothesis flwr", "list --paper fedau", 0, "fedau/theorem-2"),
    ("torch sklearn xarray pandas PIL z3 flint hypothesis flwr", "refute rate-above-one", 0, "refuted"),
]


LONG = [  # as `run` does
    ("torch", f"results {SWEEP} --out nowhere", 2, "fedbounds[empirical]"),
    ("torch", f"confront {SWEEP} {THEOREM} --out nowhere.png", 2, "fedbounds[empirical]"),
]
CASES = [*WITHOUT, *(pytest.param(*case, marks=pytest.mark.long) for case in LONG)]
IDS = [f"{a} {w}"[:60] for a, w, *_ in WITHOUT + LONG]


@pytest.mark.parametrize(("absent", "words", "status", "said"), CASES, ids=IDS)
def test_a_command_without_an_extra(absent: str, words: str, status: int, said: str, tmp_path: Path):
    script = (
        f"import sys; sys.modules |= dict.fromkeys({absent.split()})\n"
        f"from fedbounds.command_line import main; sys.exit(main({words.replace(SWEEP, str(ROOT / SWEEP)).split()}))"
    )
    done = run_apart(path=[ROOT], cwd=tmp_path, script=script)
    assert done.returncode == status and said in done.stdout + done.stderr, done.stdout + done.stderr
    assert status == 0 or len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("absent", NEEDED)
def test_without_what_the_package_needs_the_command_says_so_in_one_line(absent: str):
    script = f"import sys; sys.modules['{absent}'] = None; sys.argv[1:] = ['report', '--help']\n"
    script += "from fedbounds.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    said = f"fedbounds: {absent} is not installed; run: pip install fedbounds\n"
    assert (done.returncode, done.stderr) in {(2, said), (0, "")} and (absent != "click" or done.returncode == 2)


def test_what_the_package_needs_is_known():
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    known = packages_distributions()
    assert {name.lower() for module in NEEDED for name in known[module]} == {n.partition(">")[0].lower() for n in needs}


def test_every_package_of_an_extra_that_a_command_may_lack_is_known_by_the_name_it_is_imported_under():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brings = {re.match(r"[\w-]+", each)[0].lower(): extra for extra in set(EXTRA_OF.values()) for each in extras[extra]}
    known = {"flwr": ["flwr"]} | packages_distributions()  # flwr is not among what is installed for the tests
    found = {distribution.lower(): EXTRA_OF[module] for module in EXTRA_OF for distribution in known[module]}
    assert found == brings


def test_a_module_that_no_extra_brings_is_an_error_of_ours(monkeypatch):
    monkeypatch.setitem(sys.modules, "fedbounds.cli.catalog", None)
    with pytest.raises(ModuleNotFoundError):
        run("list")
