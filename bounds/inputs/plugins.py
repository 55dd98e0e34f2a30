"""Packages of others: whatever their code does when it is imported, it is one error that names the package."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

from fedbounds.bounds.errors import FedboundsError

LONGEST = 300  # characters of a reason


class BrokenPlugin(FedboundsError):
    """A package that joins through an entry point cannot be loaded."""


@contextmanager
def run_guarded(what: str) -> Iterator[None]:
    """Run code of another package: what it prints is dropped, the working directory stays, its errors are one line.

    Example:
        >>> with run_guarded("the paper 'draft'"):
        ...     raise SystemExit(3)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.inputs.plugins.BrokenPlugin: the paper 'draft' cannot be loaded: SystemExit: 3; repair or
        uninstall its package
    """
    here = None
    with suppress(OSError):
        here = os.getcwd()
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    except (KeyboardInterrupt, BrokenPlugin):
        raise
    except BaseException as error:
        raise BrokenPlugin(f"{what} cannot be loaded: {_reason(error)}; repair or uninstall its package") from error
    finally:
        if here is not None:
            with suppress(OSError):
                os.chdir(here)


def _reason(error: BaseException) -> str:
    """An error in one line, printable and short."""
    try:
        said = " ".join(str(error).split())
    except Exception:  # its own
        said = ""
    said = "".join(character if character.isprintable() else "?" for character in said)
    kind = "" if isinstance(error, FedboundsError) and said else type(error).__name__
    reason = ": ".join(part for part in (kind, said) if part)
    return reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 3]}..."
