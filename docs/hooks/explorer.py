"""A hook of mkdocs: the explorer, as `fedbounds explore` writes it, lies beside the pages of the site."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.structure.files import File, Files

from fedbounds.bounds.explorer.pages import explore


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Called by mkdocs with the pages there are; adds the explorer's."""
    with TemporaryDirectory() as folder:
        for path in explore(Path(folder)):
            files.append(File.generated(config, f"explorer/{path.name}", content=path.read_text(encoding="utf-8")))
    return files
