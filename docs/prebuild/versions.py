"""A site of several versions: a folder for each, the list for the selector in their pages, a door to the newest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

DOOR = """<!doctype html>
<meta charset="utf-8">
<title>fedbounds</title>
<meta http-equiv="refresh" content="0; url={0}/">
<a href="{0}/">fedbounds {0}</a>
"""


def list_versions(site: Path) -> None:
    """Lists the versions that have a folder in the site, newest first."""
    folders = (path.parent.name for path in site.glob("*/index.html"))
    names = sorted(folders, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    entries = [{"version": name, "title": name, "aliases": ["latest"] * (name == names[0])} for name in names]
    (site / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(DOOR.format(names[0]), encoding="utf-8")


if __name__ == "__main__":
    list_versions(Path(sys.argv[1]))
