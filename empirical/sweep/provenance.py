"""Where results come from: kept beside a result, never in its key."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any

from fedbounds.bounds.checkout import git_state
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
        "git": git_state(),
    }
