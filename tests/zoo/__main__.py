"""Writes the invariants that each mutant breaks: of all zoos, or of the modules that are named."""

from __future__ import annotations

import json
import sys

from tests.zoo import CAUGHT, zoos

found = json.loads(CAUGHT.read_text(encoding="utf-8")) if CAUGHT.exists() else {}
for module, zoo in zoos().items():
    if not sys.argv[1:] or module in sys.argv[1:]:
        found[zoo.title] = {name: zoo.broken(name) for name in zoo.mutants}
CAUGHT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
