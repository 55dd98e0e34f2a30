"""The command line: a group of commands that are imported when called."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import click

from fedbounds.bounds._version import __version__
from fedbounds.bounds.display.plain_text import visible

COMMANDS = {
    "list": ("fedbounds.cli.catalog:list_results", "List every result of every paper."),
    "show": ("fedbounds.cli.catalog:show", "Show one result as the paper prints it."),
    "covers": ("fedbounds.cli.covers:covers_command", "List the theorems that cover a setting, and why others do not."),
    "table": ("fedbounds.cli.table:table", "Compare the rates of results, or of all theorems that cover a setting."),
    "advise": ("fedbounds.cli.advise:advise_command", "Recommend a method and step sizes for a target."),
    "eval": ("fedbounds.cli.evaluate:evaluate", "Evaluate a result for chosen constants."),
    "optimize": ("fedbounds.cli.optimize:optimize", "Find the best step sizes of a bound."),
    "rounds": ("fedbounds.cli.rounds:rounds", "Count the rounds until a bound is below epsilon."),
    "compare": ("fedbounds.cli.compare:compare", "Compare bounds over a varying constant."),
    "explore": ("fedbounds.cli.explore:explore", "Write web pages with sliders for every result."),
    "audit": ("fedbounds.cli.audit:audit", "Verify the claims and compare with the ledger."),
    "check": ("fedbounds.cli.check:check", "Check the statement of a theorem file, as a linter does."),
    "refute": ("fedbounds.cli.audit:refute", "Replay the counterexample to a claim."),
    "adversary": (
        "fedbounds.cli.adversary:adversary_command",
        "Search for instances that come close to a bound.",
    ),
    "certify": ("fedbounds.cli.certify:certify", "Write a proof as a file that a stand-alone checker verifies."),
    "run": ("fedbounds.cli.sweeps:run", "Run the simulations of a TOML file."),
    "results": ("fedbounds.cli.sweeps:results", "Print the table of a TOML file's runs."),
    "schema": ("fedbounds.cli.sweeps:schema", "Print the JSON Schema of a TOML file, for editors."),
    "confront": ("fedbounds.cli.confront:confront", "Compare the runs of a TOML file, or a log, with a result."),
    "figure": ("fedbounds.cli.figures:figure", "Draw a figure by name or from a TOML file."),
    "report": ("fedbounds.cli.report:report", "Write an HTML report on the runs of a TOML file, or on a paper."),
    "demo": ("fedbounds.cli.figures:demo", "Run the main comparison on images, offline, in two minutes."),
}
CLOSED_PIPE = 141  # 128 + SIGPIPE
THEOREMS = "--theorems"
LONG_WORD = re.compile(r"\S{300,}")


class ClosedPipe(Exception):
    """The reader of the output has closed the pipe; on a BrokenPipeError click would exit with status 1."""


class LazyGroup(click.Group):
    """A group whose commands are imported when called; help is printed from the static table."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _closed_pipe():
            return super().make_context(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if ctx.resilient_parsing else _theorems_first(args))

    def invoke(self, ctx: click.Context) -> Any:
        with _closed_pipe(), _escape_output():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        from importlib import metadata  # slow to import

        return [*COMMANDS, *(point.name for point in metadata.entry_points(group="fedbounds.commands"))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            place, _, function = COMMANDS[cmd_name][0].partition(":")
            return getattr(import_module(place), function)
        from importlib import metadata

        for point in metadata.entry_points(group="fedbounds.commands", name=cmd_name):
            from fedbounds.bounds.inputs.plugins import run_guarded

            with run_guarded(f"the command {cmd_name!r}"):
                return point.load()
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, COMMANDS[name][1] if name in COMMANDS else "") for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing:  # completion: the line may be incomplete
            from fedbounds.cli.completion import FIRST_WORDS, FirstWord

            name, *rest = args
            if name in FIRST_WORDS and not rest:
                return name, FirstWord(name, lambda: self.get_command(ctx, name), FIRST_WORDS[name]), []
            return name, self.get_command(ctx, name), rest
        if args and args[0] not in COMMANDS and args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            from fedbounds.bounds.errors import unknown_name

            raise unknown_name("command", args[0], self.list_commands(ctx))
        for place, word in enumerate(args):
            if word == "" or (word.startswith("--") and word.endswith("=")):
                given = args[place - 1] if not word and args[place - 1].startswith("--") else word.rstrip("=")
                raise click.UsageError(f"{given or f'argument {place}'} is empty; give a value or leave it out")
        return super().resolve_command(ctx, args)


def _show_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the version; in a checkout with its commit."""
    if wanted and not context.resilient_parsing:
        from fedbounds.bounds.inputs.checkout import git_state

        state = git_state()
        modified = ", modified" if state and state["modified"] else ""
        click.echo(f"fedbounds {__version__}" + (f" ({state['commit'][:12]}{modified})" if state else ""))
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Print the version.",
)
@click.option(
    THEOREMS,
    metavar="PATH",
    multiple=True,
    envvar="FEDBOUNDS_THEOREMS",
    help="Add the theorem file PATH, or those of the folder PATH, to the results of all commands. May be repeated.",
)
def cli(theorems: Sequence[str]) -> None:
    """Convergence theory you can run: the numbered results of five federated-learning papers, evaluated for your
    constants, compared with simulations of the algorithms, and verified."""
    if theorems:
        from fedbounds.bounds.theory.registry import add_theorems

        for path in theorems:
            add_theorems(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; bad input is one line on standard error and status 2.

    Returns:
        0 done, 1 a check failed, 2 bad input or a file that cannot be read or written, 130 interrupted, 141 the
        pipe of the output is closed.
    """
    from fedbounds.bounds.errors import FedboundsError, missing_extra
    from fedbounds.bounds.inputs.user_files import record_inputs

    words = list(sys.argv[1:] if arguments is None else arguments)
    if "_FEDBOUNDS_COMPLETE" in os.environ:
        import_module("fedbounds.cli.completion")  # defines completion in bash and zsh
    try:
        with warnings.catch_warnings(), record_inputs():
            # numpy warns of overflow; answers show that they are not finite, and standard error is for bad input
            warnings.simplefilter("ignore", RuntimeWarning)
            code = cli.main(args=words, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk is found here, not when the process ends
    except FedboundsError as error:
        _print_error(str(error))
        return 2
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else error.format_message())
        return 0
    except click.ClickException as error:
        text = " ".join(error.format_message().split())  # it quotes all that the user typed
        if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option) and error.param.help:
            text = f"{text.removesuffix('.')} {error.param.metavar or ''}".rstrip() + f": {error.param.help}"
        _print_error(text if len(text) <= 600 else f"{text[:600]}...")
        return 2
    except ModuleNotFoundError as error:
        if (extra := missing_extra(error)) is None:
            raise
        _print_error(str(extra))
        return 2
    except MemoryError:
        _print_error(f"{words[0]} needs more memory than this machine has free; use fewer clients, seeds or settings")
        return 2
    except (KeyboardInterrupt, click.Abort):
        _print_error("interrupted")
        return 130
    except (ClosedPipe, BrokenPipeError):
        _drop_output()
        return CLOSED_PIPE
    except OSError as error:
        _drop_output()  # which may be the file that fails
        where = "" if error.filename is None else f"{str(error.filename)!r}: "
        _print_error(f"{where}{error.strerror or error}")
        return 2
    return code if isinstance(code, int) else 0


def _theorems_first(words: Sequence[str]) -> list[str]:
    """The words with every `--theorems PATH` before the command, which has no such option itself."""
    front, rest, left = [], [], list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return [*front, *rest, word, *left]
        if word == THEOREMS and left:
            front += [word, left.pop(0)]
        elif word.startswith(f"{THEOREMS}="):
            front.append(word)
        else:
            rest.append(word)
    return [*front, *rest]


@contextmanager
def _escape_output() -> Iterator[None]:
    """Escape control characters in the output of commands: labels, files and plug-ins may contain any."""
    echo = click.echo

    def echo_visible(message: Any = None, *args: Any, **kwargs: Any) -> None:
        echo(visible(message) if isinstance(message, str) else message, *args, **kwargs)

    click.echo = echo_visible
    try:
        yield
    finally:
        click.echo = echo


@contextmanager
def _closed_pipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ClosedPipe from None


def _print_error(text: str) -> None:
    """One line on standard error, if that can be written; a very long word is shortened."""
    line = LONG_WORD.sub(lambda word: f"{word[0][:160]}...{word[0][-40:]}", " ".join(text.splitlines()))
    with suppress(OSError):
        click.echo(f"fedbounds: {visible(line)}", err=True)


def _drop_output() -> None:
    """Redirect standard output to nowhere, so that the process does not fail again when it ends."""
    if sys.stdout is None or sys.stdout is not sys.__stdout__:
        return  # the caller's own
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
