"""A hook of mkdocs: the explorer, as `fedbounds explore` writes it, lies beside the pages of the site."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.structure.files import File, Files

from fedbounds.bounds.explorer.pages import explore


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Called by mkdocs with the pages there are; adds those of the explorer, in sliders/."""
    with TemporaryDirectory() as folder:
        for path in explore(Path(folder)):
            files.append(File.generated(config, f"sliders/{path.name}", content=path.read_text(encoding="utf-8")))
    return files
