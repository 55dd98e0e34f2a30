"""Writes what catches what into the page: all tables, or those of the modules that are named."""

from __future__ import annotations

import re
import sys

from tests.zoo import PAGE, zoos

page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# What catches what\n"
for module, zoo in zoos().items():
    if sys.argv[1:] and module not in sys.argv[1:]:
        continue
    rows = "\n".join(zoo.row(name) for name in zoo.mutants)
    section = f"{zoo.heading}\n\n| error | broken invariants |\n|---|---|\n{rows}\n"
    old = re.search(rf"^{zoo.heading}\n.*?(?=^## |\Z)", page, flags=re.DOTALL | re.MULTILINE)
    page = page.replace(old[0], section + "\n" * old[0].endswith("\n\n")) if old else f"{page.rstrip()}\n\n{section}"
PAGE.write_text(page, encoding="utf-8")
