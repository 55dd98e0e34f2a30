"""Completion in the shell: in a bash that runs, and in zsh and fish where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click import Argument, Context

from fedbounds.bounds.theory.registry import PAPERS, paper
from fedbounds.cli.audit import find_erratum
from fedbounds.cli.completion import FIRST_WORDS, errata, forms_by_key
from fedbounds.command_line import cli

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
THEOREM = "arbitrary-participation/theorem-3.1"
IN_BASH = """
eval "$(_FEDBOUNDS_COMPLETE=bash_source fedbounds)"
while IFS= read -r COMP_LINE; do
    COMP_POINT=${#COMP_LINE} COMPREPLY=()
    $(complete -p fedbounds | sed 's/.* -F \\([^ ]*\\) .*/\\1/') fedbounds 2>/dev/null
    echo "${COMPREPLY[@]}"
done
"""


def ask(shell: str, script: str, said: str = "") -> str:
    words = [shell, "--norc"] if shell == "bash" else [shell]
    done = subprocess.run([*words, "-c", script], input=said, text=True, capture_output=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout


COMPLETED = [
    ("fedbounds ev", {"eval"}, {"show"}),
    ("fedbounds eval arbitrary-participation/theorem-3", {THEOREM}, {"fedau/theorem-2"}),
    ("fedbounds eval --fo", {"--form"}, {"--json"}),
    (f"fedbounds eval {THEOREM} --form explicit:", {"any-P", "sumsq"}, {"explicit", "explicit:any-P"}),
    (f"fedbounds eval {THEOREM} --set L=1 ", {"gamma=", "eta="}, {"L="}),
    (f"fedbounds eval {THEOREM} L=1 --assume ", {"all"}, {"gamma="}),
    (f"fedbounds optimize {THEOREM} --over gamma,e", {"gamma,eta"}, {"gamma,gamma"}),
    (f"fedbounds optimize {THEOREM} --within et", {"eta="}, {"gamma="}),
    (f"fedbounds compare {THEOREM}:sha", {"sharp", "sharp:worst"}, {"explicit"}),
    ("fedbounds refute fedau/erratum/", {"fedau/erratum/rate-above-one"}, {THEOREM}),
    ("fedbounds refute ", {"fedau/erratum/rate-above-one"}, {THEOREM}),
    ("fedbounds refute fedau/theorem-2[pri", set(), {"fedau/theorem-2[printed]"}),
    ("fedbounds report --paper f", {"fedau", "fedmrn"}, {"tdcd"}),
    ("fedbounds report --key fedau/theorem-2", {"fedau/theorem-2"}, {THEOREM}),
    ("fedbounds figure fedau/fig", {"fedau/figure-1"}, {"fedau/table-1"}),
    ("fedbounds list --paper fed", {"fedau", "fedmrn"}, {"tdcd"}),
    ("fedbounds nonsense --", set(), {"--form"}),
]
LONG = ("fedbounds figure f", {"fedau", "fashion-mnist"}, {"tdcd"})


@pytest.mark.parametrize("lines", [COMPLETED, pytest.param([LONG], marks=pytest.mark.long)])
def test_bash_completes(lines: list[tuple[str, set[str], set[str]]]):
    answers = ask("bash", IN_BASH, "".join(f"{line}\n" for line, _, _ in lines)).splitlines()
    wrong = [
        (line, answer)
        for (line, among, never), answer in zip(lines, answers, strict=True)
        if not among <= {*answer.split()} or never & {*answer.split()}
    ]
    assert not wrong


def test_the_keys_and_forms_that_complete_are_those_there_are():
    found = forms_by_key()
    listed = {result.key: {form.name for form in result.forms} for name in PAPERS for result in paper(name).results}
    assert {key: set(found[key]) for key in listed} == listed


def test_what_completes_after_refute_is_what_can_be_refuted():
    ids = errata(Context(cli), Argument(["claim"]), "")
    assert {"fedau/erratum/rate-above-one", "fedau/theorem-3/B.6.8a", "fedau/lemma-b.5.1[printed]"} <= {*ids}
    for each in ids:
        assert find_erratum(each)[0] == each.partition("/")[0]


def test_a_key_completes_without_sympy_and_without_numpy():
    script = (
        "import os, sys; os.environ |= {'_FEDBOUNDS_COMPLETE': 'bash_complete', 'COMP_WORDS': 'fedbounds eval fed'}\n"
        "sys.argv[0] = 'fedbounds'\n"
        "from fedbounds.command_line import main\n"
        "try: main([])\n"
        "except SystemExit: print(*sorted({'sympy', 'numpy', 'scipy', 'torch'} & set(sys.modules)))\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, text=True, capture_output=True)
    *words, imported = answer.stdout.split("\n")[:-1]
    assert "plain,fedau/theorem-2" in words and imported == "", answer.stderr


@pytest.mark.parametrize("name", FIRST_WORDS)
def test_a_command_completed_without_being_imported_does_begin_with_such_a_word(name: str):
    command = cli.get_command(Context(cli), name)
    assert command is not None
    first = next(parameter for parameter in command.params if isinstance(parameter, Argument))
    assert first.name in {"key", "keys", "claim", "bare"}
    assert first.shell_complete(Context(command, resilient_parsing=True), "fed")


@pytest.mark.parametrize("shell", [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)])
def test_the_script_for_a_shell_is_one_that_it_can_read(shell: str):
    source = ask("bash", f"_FEDBOUNDS_COMPLETE={shell}_source fedbounds")
    read = subprocess.run([shell, "-n"], input=source, text=True, capture_output=True)
    assert read.returncode == 0 and not read.stderr and "fedbounds" in source


@pytest.mark.parametrize("shell", [shell for shell in ("zsh", "fish") if shutil.which(shell)])
def test_zsh_and_fish_are_answered_in_their_own_way(shell: str):
    last = "2" if shell == "zsh" else "fedau/theorem-"  # zsh says which word, fish says the word
    line = f"COMP_WORDS='fedbounds eval fedau/theorem-' COMP_CWORD={last}"
    answer = ask("bash", f"{line} _FEDBOUNDS_COMPLETE={shell}_complete fedbounds")
    assert "fedau/theorem-2" in answer and "tdcd" not in answer
