"""The command line, in process."""

import io
from contextlib import redirect_stderr, redirect_stdout

import fedbounds


def run(*words):
    """(exit status, standard output, standard error) of these words."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = fedbounds.main(words)
    return status, out.getvalue(), err.getvalue()
