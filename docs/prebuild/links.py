"""Every link of a finished site leads somewhere: each file and each anchor that a page names is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page points at, and the anchors that others can point at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {"", "__top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for every tag."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken(site: Path) -> Iterator[str]:
    """Each link inside the site that leads nowhere, with its page."""
    site = site.resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            url = urlsplit(link)
            if url.scheme or url.netloc or path.name == "404.html":  # the latter's are from the root of its server
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            inside = target.is_relative_to(site) and target.is_file()
            if not inside or (target in pages and unquote(url.fragment) not in pages[target].anchors):
                yield f"{path.relative_to(site)}: {link}"


if __name__ == "__main__":
    found = list(broken(Path(sys.argv[1])))
    print(*found, f"{len(found)} broken links", sep="\n")
    sys.exit(bool(found))
