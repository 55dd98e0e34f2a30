"""Where results come from: kept beside a result, never in its key."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from fedbounds.bounds._version import __version__
from fedbounds.bounds.inputs.checkout import git_state


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


def peak_bytes() -> int:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def origin(facts: Mapping[str, Any]) -> dict[str, str]:
    """The parts of a record's provenance that may differ between runs of one sweep.

    Example:
        >>> origin({"host": "node1", "git": {"commit": "0123456789abcdef", "modified": True}})
        {'host': 'node1', 'git': '0123456789ab with changes'}
    """
    git = facts.get("git") or {}
    changes = " with changes" if git.get("modified") else ""
    found = {name: facts[name] for name in ("host", "platform", "python") if name in facts}
    return {**found, **facts.get("packages", {}), **({"git": git["commit"][:12] + changes} if git else {})}
