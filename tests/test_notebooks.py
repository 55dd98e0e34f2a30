"""The notebooks run from top to bottom and print the numbers that are committed.

Text must be the same up to blanks, integers the same, other numbers equal up to one unit of the last digit:
a notebook promises the digits it prints, no more.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\w)")


def last_digit(number: str) -> float:
    """One unit of the last printed digit of a number; nothing for an integer.

    0.120 has 0.001, 1.5e-3 has 1e-4.
    """
    mantissa, _, exponent = number.lower().partition("e")
    if not exponent and "." not in mantissa:
        return 0.0
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals)


def differences(committed: str, printed: str) -> list[str]:
    """What is not the same in two printed texts, each as one line; addresses in memory do not count."""
    committed, printed = (re.sub(r"\b0x[0-9a-f]+", "0x", text) for text in (committed, printed))
    words, words_now = (" ".join(NUMBER.sub("#", text).split()) for text in (committed, printed))
    if words != words_now:
        return [f"the words: {words!r}, now {words_now!r}"]
    numbers = zip(NUMBER.findall(committed), NUMBER.findall(printed), strict=True)
    return [
        f"{old}, now {new}"
        for old, new in numbers
        if not abs(float(old) - float(new)) <= 1.001 * max(last_digit(old), last_digit(new))
    ]


def printed_text(cell: nbformat.NotebookNode) -> str:
    """What a cell prints on standard output, and its value where that is text and not a picture."""
    parts: list[str] = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
            parts.append(output.text)
        elif output.output_type == "execute_result" and not any(kind.startswith("image") for kind in output.data):
            parts.append(output.data.get("text/plain", ""))
    return "\n".join(parts)


@pytest.mark.notebook
@pytest.mark.filterwarnings(
    "default"
)  # the client of the notebook's kernel, not our code; cells run in their own process
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_prints_its_committed_numbers(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    committed = nbformat.read(path, as_version=4)
    code = [cell for cell in committed.cells if cell.cell_type == "code" and cell.source.strip()]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), (
        "run it from top to bottom, then save"
    )
    assert any(NUMBER.search(printed_text(cell)) for cell in code), "the notebook prints no number"

    executed = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        executed, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    wrong = [
        f"cell {number}: {difference}"
        for number, (old, new) in enumerate(zip(committed.cells, executed.cells, strict=True))
        for difference in differences(printed_text(old), printed_text(new))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("committed", "printed", "same"),
    [
        ("gap 0.123 after 50 rounds", "gap  0.124 after 50 rounds", True),
        ("gap 0.123 after 50 rounds", "gap 0.125 after 50 rounds", False),
        ("gap 0.123 after 50 rounds", "gap 0.123 after 51 rounds", False),
        ("9.99e-05", "1.00e-04", True),
        ("9.99e-05", "1.02e-04", False),
        ("-0.00", "0.00", True),
        ("<Line2D at 0x7f01>", "<Line2D at 0x7f02>", True),
        ("nan", "0.1", False),
        ("Theorem 3.1 holds", "Theorem 3.1 fails", False),
    ],
)
def test_a_number_may_move_by_one_unit_of_its_last_digit(committed: str, printed: str, same: bool) -> None:
    assert (not differences(committed, printed)) is same


def test_every_notebook_is_found() -> None:
    assert NOTEBOOKS
