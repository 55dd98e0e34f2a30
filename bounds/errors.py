"""The one family of errors a user can cause: a line that says what, where, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable


class FedboundsError(ValueError):
    """Bad input, told in one line.

    The command line prints the line on standard error and exits with status 2; the library raises it. Everything a
    user can get wrong (an unknown name, a value outside its domain, a damaged file) is this error or a subclass.

    Example:
        >>> raise FedboundsError("sigma = -1 is outside its domain [0, inf)")
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: sigma = -1 is outside its domain [0, inf)
    """


class MissingExtra(FedboundsError):
    """An optional dependency is absent; the line names the one command of pip that installs it."""

    def __init__(self, extra: str, needs: str) -> None:
        package = f"'fedbounds[{extra}]'" if extra else "fedbounds"
        super().__init__(f"{needs} is not installed; run: pip install {package}")


# what the package needs in any case, and what an extra of it brings, by the name it is imported under
NEEDED = ("sympy", "numpy", "scipy", "matplotlib", "click", "rich", "latex2mathml", "jinja2")
EXTRA_OF = {
    "torch": "empirical",
    "sklearn": "empirical",
    "xarray": "empirical",
    "pandas": "empirical",
    "PIL": "empirical",
    "z3": "audit",
    "flint": "audit",
    "hypothesis": "testing",
    "flwr": "flower",
    "PEPit": "worst-case",
    "cvxpy": "worst-case",
    "clarabel": "worst-case",
    "dask": "cluster",
    "distributed": "cluster",
}


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """What brings a module that is not there, the package itself or an extra of it; None where neither does.

    Example:
        >>> str(missing_extra(ModuleNotFoundError(name="torch.nn")))
        "torch is not installed; run: pip install 'fedbounds[empirical]'"
    """
    module = (error.name or "").partition(".")[0]
    extra = "" if module in NEEDED else EXTRA_OF.get(module)
    return None if extra is None else MissingExtra(extra, module)


MOST_SHOWN = 240  # characters of the legal names, where none is near
LONGEST_NAME = 60  # characters of one name


# what other libraries call a constant
FROM_OTHER_LIBRARIES = {
    "lr": "local_step_size",
    "learning_rate": "local_step_size",
    "local_lr": "local_step_size",
    "client_lr": "local_step_size",
    "server_lr": "global_step_size",
    "global_lr": "global_step_size",
    "num_rounds": "rounds",
    "num_clients": "clients",
    "local_epochs": "local_steps",
    "epochs": "local_steps",
}


def unknown_name(kind: str, name: str, choices: Iterable[str], listed_by: str = "") -> FedboundsError:
    """The error for a name that does not exist, with the nearest names that do."""
    import difflib  # takes its time, and most runs have no such error

    known = sorted(set(choices))
    name = _clipped(name)
    folded = {choice.lower(): choice for choice in reversed(known)}
    if (other := FROM_OTHER_LIBRARIES.get(name.lower())) and "constant" in kind:
        return FedboundsError(f"unknown {kind} {name!r}; did you mean {other}?")
    near = [_clipped(folded[match]) for match in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.55)]
    shown: list[str] = []
    for choice in map(_clipped, known):
        if sum(len(one) + 2 for one in shown) + len(choice) > MOST_SHOWN:
            break
        shown.append(choice)
    rest = [f"and {len(known) - len(shown)} more"] if len(shown) < len(known) else []
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join([*shown, *rest])}"
    where = f" ({listed_by} lists them)" if listed_by and (near or rest) else ""
    return FedboundsError(f"unknown {kind} {name!r}; {hint}{where}")


def _clipped(name: str) -> str:
    """A name as it goes into a line."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
