"""The stages of `.ci/run`, what each of them reads, and which of them are due.

    python .ci/stages.py            one line a stage: its target of the Makefile, `run` or `skip`, and the reason

A stage is due if a file that it reads has changed since the last accepted commit: the environment variable ACCEPTED,
else `origin/main` if that is an ancestor of HEAD and not HEAD itself. If neither is known, or files are changed and not
committed, every stage is due. `tests/test_stages.py` compares what is listed here with what the stages import.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAPERS = sorted({path.parent.name for path in ROOT.glob("bounds/papers/*/ledger.json")} - {"references"})

SETTINGS = ["pyproject.toml", "setup.py", "constraints.txt", "Makefile", ".ci"]
SOURCE = ["bounds", "empirical", "figures", "fedbounds"]
# What an audit of a paper reads is the theory and the simulations, without figures and without the other papers.
SHARED = [
    "fedbounds",
    *(
        path.relative_to(ROOT).as_posix()
        for layer in ("bounds", "empirical")
        for path in (*ROOT.glob(f"{layer}/*"), ROOT / layer / "papers/__init__.py")
        if path.name not in ("papers", "__pycache__")
    ),
]

# The long ones first. The tests come before all others, in one run on both cores.
READS = {
    "test": ["."],
    "test-audit": [*SOURCE, "tests"],
    "test-invariants": [*SOURCE, "tests", "docs", "examples"],
    "test-figures": [*SOURCE, "tests", "docs", "examples"],
    "test-processes": ["."],
    "test-pages": [*SOURCE, "docs", "README.md", "examples", "tests/test_readme.py", "tests/conftest.py"],
    **{
        f"audit-{paper.replace('_', '-')}": [*SHARED, f"bounds/papers/{paper}", f"empirical/papers/{paper}"]
        for paper in PAPERS
    },
    "audit-references": [*SHARED, "bounds/papers", "empirical/papers"],  # runs of the algorithms of all papers
    "lint": ["."],
    "wheel": [*SOURCE, "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "tests/test_packaging.py"],
    "docs": [*SOURCE, "docs", "tests/zoo", "zensical.toml", "README.md", "CHANGELOG.md"],
    "notebooks": [*SOURCE, "notebooks", "tests/test_notebooks.py", "tests/conftest.py"],
    "doctest": [*SOURCE, "tests/conftest.py"],
}


def git(*arguments: str) -> str | None:
    """Return what git prints, or nothing if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True)
    return done.stdout.strip() if done.returncode == 0 else None


def accepted_commit() -> str | None:
    """Return the last accepted commit, if it is known."""
    named = git(
        "rev-parse", "--verify", "--quiet", f"{os.environ.get('ACCEPTED') or 'refs/remotes/origin/main'}^{{commit}}"
    )
    head = git("rev-parse", "HEAD")
    if not named or named == head or git("merge-base", "--is-ancestor", named, "HEAD") is None:
        return None
    return named


def changed_files(commit: str) -> list[str]:
    """Return the files that differ between the accepted commit and the working tree, untracked ones included."""
    differing = git("diff", "--name-only", "--no-renames", commit)
    untracked = git("ls-files", "--others", "--exclude-standard")
    if differing is None or untracked is None:
        raise SystemExit("git cannot compare the working tree with the accepted commit")
    return [*differing.splitlines(), *untracked.splitlines()]


def reads(stage: str, file: str) -> bool:
    """Whether a stage reads a file."""
    return any(path in (".", file) or file.startswith(f"{path}/") for path in [*SETTINGS, *READS[stage]])


def due(stage: str, commit: str | None, changed: list[str]) -> tuple[bool, str]:
    """Whether a stage is due, and the reason."""
    if commit is None:
        return True, "the last accepted commit is not known"
    read = [file for file in changed if reads(stage, file)]
    if read:
        return True, f"{read[0]} has changed" + (f", and {len(read) - 1} more" if read[1:] else "")
    return False, f"no file that it reads has changed since {commit[:10]}"


def main() -> None:
    """Print the stages."""
    commit = accepted_commit()
    changed = changed_files(commit) if commit else []
    for stage in READS:
        needed, why = due(stage, commit, changed)
        sys.stdout.write(f"{stage} {'run' if needed else 'skip'} {why}\n")


if __name__ == "__main__":
    main()
