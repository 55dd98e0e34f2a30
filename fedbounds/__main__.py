"""The command, as `fedbounds` and as `python -m fedbounds`."""

import gc
import os
import sys

from fedbounds.bounds.errors import missing_extra

REMEMBERED = "20000"  # answers of sympy: with its own thousand a proof asks again what it has just been told
SELDOM = 100_000  # new objects between two looks for garbage: what is imported is none, and there is much of it


def main() -> int:
    """The command line; where not even that can be imported, one line that says what is missing."""
    gc.set_threshold(SELDOM, *gc.get_threshold()[1:])
    os.environ.setdefault("SYMPY_CACHE_SIZE", REMEMBERED)
    try:
        from fedbounds.command_line import main as command

        return command()
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        sys.stderr.write(f"fedbounds: {missing}\n")
        return 2
    finally:
        gc.freeze()  # the process ends: nothing is looked through for garbage any more


if __name__ == "__main__":
    raise SystemExit(main())
