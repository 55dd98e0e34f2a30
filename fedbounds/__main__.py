"""The command, as `fedbounds` and as `python -m fedbounds`."""

import sys

from fedbounds.bounds.errors import missing_extra


def main() -> int:
    """The command line; where not even that can be imported, one line that says what is missing."""
    try:
        from fedbounds.command_line import main as command
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        sys.stderr.write(f"fedbounds: {missing}\n")
        return 2
    return command()


if __name__ == "__main__":
    raise SystemExit(main())
