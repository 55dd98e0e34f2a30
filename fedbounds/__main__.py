"""The command line, as `fedbounds` and as `python -m fedbounds`."""

import gc
import os
import sys

from fedbounds.bounds.errors import missing_extra

CACHE_SIZE = "20000"  # of sympy; its default, 1000, is too small for a proof
GC_THRESHOLD = 100_000  # new objects between two collections: imports make many objects and no garbage


def main() -> int:
    """Run the command line; if it cannot be imported, print which package is missing."""
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
    os.environ.setdefault("SYMPY_CACHE_SIZE", CACHE_SIZE)
    try:
        from fedbounds.command_line import main as command

        return command()
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        sys.stderr.write(f"fedbounds: {missing}\n")
        return 2
    finally:
        gc.freeze()  # no collection when the process ends


if __name__ == "__main__":
    raise SystemExit(main())
