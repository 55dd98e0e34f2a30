"""The command line, in process, and packages that it finds installed."""

import io
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import fedbounds


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
