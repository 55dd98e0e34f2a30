"""What a report asks to cite beside the papers."""

from __future__ import annotations

from fedbounds.bounds._version import __version__


def software() -> str:
    """fedbounds itself, as BibTeX."""
    lines = {
        "title": "fedbounds: convergence theory of federated learning that you can run",
        "author": "{The fedbounds authors}",
        "version": __version__,
        "note": "Apache-2.0",
    }
    entries = ",\n".join(f"  {name:<7} = {{{text}}}" for name, text in lines.items())
    return f"@software{{fedbounds,\n{entries}\n}}"
