"""What completes a word in the shell, looked up when a word is completed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click


def complete_late(what: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """The function of this name in `fedbounds.cli.completion`, which takes its time to import."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
        return vars(import_module("fedbounds.cli.completion"))[what](context, parameter, incomplete)

    return complete
