"""The command line, in process, and packages that it finds installed."""

import io
import multiprocessing
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

import fedbounds

ROOT = Path(__file__).resolve().parent.parent
PRINTED = ("standard-output", "standard-error")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["sympy", "scipy.interpolate", "torch", "matplotlib.pyplot"])


def run(*words):
    """(exit status, standard output, standard error) of these words."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = fedbounds.main(words)
    return status, out.getvalue(), err.getvalue()


def declare(example: Path, site: Path) -> None:
    """What pip writes of a package into a folder on the path: its name, its version and its entry points."""
    declared = tomllib.loads((example / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = declared["name"], declared["version"]
    info = site / f"{example.name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = [
        f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in e.items()) for group, e in declared["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))


def run_apart(*words: str, path: Sequence[Path], cwd: Path, script: str = "") -> CompletedProcess[str]:
    """These words, or a script, in a process of its own with these folders first on its path.

    It is forked from one that has imported what is not ours, which takes seconds, and nothing that is ours.
    """
    said = {"PYTHONPATH": ":".join(map(str, path)), "XDG_CACHE_HOME": str(cwd / "cache"), "COLUMNS": "100"}
    process = FORKS.Process(target=_apart, args=(words, script, path, cwd, said))
    process.start()
    process.join()
    return CompletedProcess(words, process.exitcode, *((cwd / name).read_text() for name in PRINTED))


def _apart(words: Sequence[str], script: str, path: Sequence[Path], cwd: Path, said: Mapping[str, str]) -> None:
    for stream, name in enumerate(PRINTED, start=1):
        with (cwd / name).open("wb") as file:
            os.dup2(file.fileno(), stream)
    os.environ |= said
    os.chdir(cwd)
    sys.path[:] = [*map(str, path), *(place for place in sys.path if place != str(ROOT) and "/examples/" not in place)]
    if script:
        exec(script, {"__name__": "__main__"})
    else:
        sys.exit(fedbounds.main(words))
