"""Data files of the package, in TOML."""

from typing import Any


def read_data_file(module: str, name: str) -> dict[str, Any]:
    """The TOML file of this name beside a module, which is given by its `__file__`."""
    import tomllib  # slow to import, and few commands need it
    from pathlib import Path

    return tomllib.loads(Path(module).with_name(name).read_text("utf-8"))
