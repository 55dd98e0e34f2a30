"""Completion in the shell: keys and forms from the ledgers, without sympy; constants from the result."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, ZshComplete, add_completion_class, split_arg_string

PAPERS = Path(__file__).parents[1] / "bounds" / "papers"
BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' response type value
    response=$(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete $1)
    for completion in $response; do
        IFS=',' read type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value"); [[ $value == *= ]] && compopt -o nospace ;;
        esac
    done
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class Bash(BashComplete):
    """Completion in bash, which also breaks words at = and :, so that an answer is only the part after the break."""

    source_template = BASH
    prefix = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the one under it."""
        line = os.environ["COMP_WORDS"]
        _, *words = split_arg_string(line)
        incomplete = "" if line.endswith(" ") or not words else words.pop()
        self.prefix = re.sub("[^=:]*$", "", incomplete)
        return words, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """One answer."""
        return f"{item.type},{item.value.removeprefix(self.prefix)}"


@add_completion_class
class Zsh(ZshComplete):
    """Completion in zsh, without a blank after NAME=."""

    source_template = ZshComplete.source_template.replace(
        'completions+=("$key")', """[[ $key == *= ]] && compadd -U -S '' -- "$key" || completions+=("$key")"""
    )


class FirstWord(click.Command):
    """A stand-in that completes the first word of a command without importing the command."""

    def __init__(self, name: str, command: Callable[[], click.Command | None], words: Any) -> None:
        super().__init__(name, params=[click.Argument(["word"], shell_complete=words)])
        self.command = command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """The options of the command, which is imported."""
        command = self.command()
        return command.shell_complete(ctx, incomplete) if command else []


@cache
def claims() -> tuple[str, ...]:
    """The ids of all claims in our ledgers."""
    ledgers = (path.read_text(encoding="utf-8") for path in sorted(PAPERS.glob("*/ledger.json")))
    return tuple(claim for ledger in ledgers for claim in re.findall(r'^  "(.*)": \{$', ledger, re.MULTILINE))


@cache
def forms_by_key() -> dict[str, list[str]]:
    """The forms of every result: from the ledgers, or from the modules of installed packages."""
    found: dict[str, list[str]] = {}
    for claim in claims():
        key, bracket, form = claim.partition("[")
        if bracket and form.endswith("]"):
            found.setdefault(key, []).append(form[:-1])
    for path in sorted(PAPERS.glob("references/*/*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        single = "printed" if document.get("order_only") else "explicit"
        found[document["key"]] = [*document.get("forms", ())] or [single]
    from importlib import metadata

    if metadata.entry_points(group="fedbounds.papers"):
        from fedbounds.bounds.theory import registry

        others = (each for each in registry.papers() if each.key not in registry.PAPERS)
        installed = (result for each in others for result in each.results)
        found |= {result.key: [form.name for form in result.forms] for result in installed}
    return found


def matching_prefix(words: Iterable[str], incomplete: str) -> list[str]:
    """The words that begin with `incomplete`."""
    return [word for word in words if word.startswith(incomplete)]


def keys(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Keys of results; after a colon, forms of one."""
    key, colon, _ = incomplete.partition(":")
    found = forms_by_key()
    return matching_prefix([f"{key}:{form}" for form in found.get(key, ())] if colon else found, incomplete)


def errata(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Errata, and the claims that a counterexample refutes."""
    ledgers = (json.loads(path.read_bytes())["claims"] for path in sorted(PAPERS.glob("*/ledger.json")))
    claims = (item for ledger in ledgers for item in ledger.items())
    refuted = (claim for claim, found in claims if (found["verdict"], found["checker"]) == ("refuted", "refutations"))
    return matching_prefix(refuted, incomplete)


def files(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """Files, completed by the shell."""
    return [CompletionItem(incomplete, type="file")]


def papers(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Keys of papers."""
    return matching_prefix(dict.fromkeys(key.partition("/")[0] for key in forms_by_key()), incomplete)


def forms(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Forms of the result whose key is on the line."""
    found = forms_by_key()
    return matching_prefix((form for key in line_keys() for form in found[key]), incomplete)


def constants(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """NAME= for the constants that are not given yet; for `compare` keys too."""
    by_key = any(each.name == "key" for each in ctx.command.params)
    found = [] if by_key or parameter.name != "bare" else keys(ctx, parameter, incomplete)
    given = {word.partition("=")[0] for word in line_words()}
    return [*found, *matching_prefix((f"{name}=" for name in symbols() if name not in given), incomplete)]


def names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """A list of constants, as in gamma,eta."""
    before, comma, last = incomplete.rpartition(",")
    chosen = before.split(",")
    return [f"{before}{comma}{name}" for name in matching_prefix(symbols(), last) if name not in chosen]


def range_completion(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """NAME= for one constant."""
    return [f"{name}=" for name in names(ctx, parameter, incomplete)]


def assumptions(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of assumptions of the results on the line, and "all"."""
    from fedbounds.bounds.theory.registry import load

    known = (form.assumptions for key in line_keys() for form in load(key).forms)
    return matching_prefix(["all", *dict.fromkeys(each.name for some in known for each in some)], incomplete)


def symbols() -> list[str]:
    """The constants of the results on the line."""
    from fedbounds.bounds.theory.registry import load
    from fedbounds.bounds.theory.result import reachable

    results = [load(key) for key in line_keys()]
    used = {name for result in results for form in result.forms for name in reachable(form)}
    return list(dict.fromkeys(name for result in results for name in result.notation if name in used))


def line_words() -> list[str]:
    """The words on the line. (click forgets all arguments where the option before the cursor lacks its value.)"""
    return split_arg_string(os.environ.get("COMP_WORDS", ""))


def line_keys() -> list[str]:
    """The words on the line that are keys of results."""
    found = forms_by_key()
    return [key for key in (word.partition(":")[0] for word in line_words()) if key in found]


FIRST_WORDS = {
    name: keys for name in ("show", "eval", "optimize", "rounds", "compare", "table", "audit", "schema", "adversary")
} | {"refute": errata}
