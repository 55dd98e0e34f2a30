"""The state of git, where this package runs from a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TypedDict


class GitState(TypedDict):
    """A commit, and whether tracked files differ from it."""

    commit: str
    modified: bool


def git_state(file: str = __file__) -> GitState | None:
    """The state of the checkout that a file is in; None where git does not track it."""
    path = Path(file).resolve()

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(path.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", path.name)
        return {"commit": git("rev-parse", "HEAD"), "modified": bool(git("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None
