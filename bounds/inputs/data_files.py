"""Data files of the package, in TOML."""

from typing import Any


def read_data_file(module: str) -> dict[str, Any]:
    """The TOML file that lies beside a module and has its name; the module is given by its `__file__`."""
    import tomllib  # slow to import, and few commands need it
    from pathlib import Path

    return tomllib.loads(Path(module).with_suffix(".toml").read_text("utf-8"))
