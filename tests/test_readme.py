"""The README and the site tell the truth: their examples run and print what they show.

In a page, a ```python block runs (all blocks of a page share one namespace) and must print exactly what the
```text block right after it shows, or nothing; with `>>>` it is a doctest. In a ```console block each line
after `$ ` runs in bash and must print the lines below it, beside the files that the page shows as ```toml
blocks which begin with `# NAME.toml`. `...` stands for anything. What cannot run in a test (cloning,
installing) is a ```sh block; the targets of make that it names must exist.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """One fenced block: its language, its text and the line of the page on which the text begins."""

    language: str
    text: str
    line: int


def fenced_blocks(markdown: str) -> list[Block]:
    return [Block(m[1], m[2], markdown.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(markdown)]


def pages_with(language: str) -> list[str]:
    pages = [page for page in PAGES if f"\n```{language}" in (ROOT / page).read_text(encoding="utf-8")]
    return ["README.md", *pages]


def disagreement(want: str, got: str) -> str:
    """Empty where the printed text is the one shown, line by line (trailing blanks aside), else both."""
    want, got = ("\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n" for text in (want, got))
    same = doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
    return "" if same else f"shown:\n{want}\nprinted:\n{got}"


def run_python(markdown: str) -> list[str]:
    """Run a page's python blocks in order; what disagrees, with its line."""
    wrong: list[str] = []
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block, after in pairwise([*fenced_blocks(markdown), Block("", "", 0)]):
        if block.language != "python":
            continue
        printed = io.StringIO()
        if ">>>" in block.text:
            examples = doctest.DocTestParser().get_doctest(block.text, namespace, "page", None, block.line - 1)
            doctest.DocTestRunner(optionflags=FLAGS).run(examples, out=printed.write, clear_globs=False)
            namespace.update(examples.globs)
            trouble = printed.getvalue()
        else:
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, f"<line {block.line}>", "exec"), namespace)
            trouble = disagreement(after.text if after.language == "text" else "", printed.getvalue())
        if trouble:
            wrong.append(f"line {block.line}:\n{trouble}")
    return wrong


def run_console(markdown: str, directory: Path) -> list[str]:
    """Run a page's console blocks in order, in one directory; what disagrees, with the command."""
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    wrong: list[str] = []
    for block in fenced_blocks(markdown):
        if block.language == "toml" and (named := re.match(r"# (\w+\.toml)\n", block.text)):
            (directory / named[1]).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        for example in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, want = re.fullmatch(r"((?:.*\\\n)*.*)\n?((?:.*\n)*)", example).groups()
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=directory,
                env=environment,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=300,
            )
            if trouble := disagreement(want, done.stdout):
                wrong.append(f"line {block.line}: $ {command}\n{trouble}")
    return wrong


@pytest.mark.pages
@pytest.mark.parametrize("page", pages_with("python"))
def test_the_python_examples_print_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    markdown = (ROOT / page).read_text(encoding="utf-8")
    assert any(block.language == "python" for block in fenced_blocks(markdown))
    wrong = run_python(markdown)
    assert not wrong, "\n".join(wrong)


@pytest.mark.pages
@pytest.mark.parametrize("page", pages_with("console"))
def test_the_console_examples_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    markdown = (ROOT / page).read_text(encoding="utf-8")
    assert any(block.language == "console" and "$ " in block.text for block in fenced_blocks(markdown))
    wrong = run_console(markdown, tmp_path)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_every_make_target_that_a_page_names_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    markdown = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`make ([a-z]+)", markdown)
    for block in fenced_blocks(markdown):
        if block.language == "sh":
            named += re.findall(r"\bmake ([a-z]+)", block.text)
    assert not set(named) - targets


def test_every_file_that_the_readme_links_to_exists() -> None:
    markdown = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s]+)", markdown) + re.findall(r'(?:src|href)="([^"#]+)"', markdown)
    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert not [link for link in local if not (ROOT / link).exists()]


TRUE = """
```python
x = 1 / 3
print(f"{x:.3f}")
```
prints
```text
0.333
```
```python
>>> x > 0
True
```
"""


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    assert not run_python(TRUE)
    assert run_python(TRUE.replace("0.333", "0.334"))
    assert run_python(TRUE.replace("True", "False"))
    assert run_python(TRUE.replace("text", "sh")), "an output that the page does not show"
    shell = "```console\n$ echo one \\\n    two\none two\n$ echo three; date\nthree\n...\n```\n"
    assert not run_console(shell, tmp_path)
    assert run_console(shell.replace("one two", "one  two"), tmp_path)
    assert run_console(shell.replace("\nthree", "\nfour"), tmp_path)
