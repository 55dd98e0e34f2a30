"""Where results come from: kept beside a result, never in its key."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from fedbounds.bounds.version import __version__


def provenance() -> dict[str, Any]:
    """Where results come from: host, versions of packages, git state."""
    versions = {"fedbounds": __version__}
    for package in ("torch", "numpy", "scipy", "scikit-learn"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "host": platform.node(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "python": sys.version.split()[0],
        "packages": versions,
        "git": _git_state(Path(__file__).resolve().parent),
    }


def _git_state(directory: Path) -> dict[str, Any] | None:
    """Commit and whether tracked files differ from it; None where git does not track this package."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(directory), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return {"commit": git("rev-parse", "HEAD"), "modified": bool(git("status", "--porcelain", "-uno"))}
    except (OSError, subprocess.SubprocessError):
        return None
