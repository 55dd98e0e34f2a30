"""The history of a Flower server: `History` or `Result` as JSON, or the text that the server prints of it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.user_files import read_text
from fedbounds.empirical.comparison.log_formats.log import LARGEST, Columns, Log

SECTIONS = {  # headings of the printed text -> names of the attributes
    "History (loss, distributed)": "losses_distributed",
    "History (loss, centralized)": "losses_centralized",
    "History (metrics, distributed, fit)": "metrics_distributed_fit",
    "History (metrics, distributed, evaluate)": "metrics_distributed",
    "History (metrics, centralized)": "metrics_centralized",
    "Aggregated ClientApp-side Train Metrics": "train_metrics_clientapp",
    "Aggregated ClientApp-side Evaluate Metrics": "evaluate_metrics_clientapp",
    "ServerApp-side Evaluate Metrics": "evaluate_metrics_serverapp",
}
HEADING = re.compile(rf"^\s*({'|'.join(map(re.escape, SECTIONS))}):?", re.MULTILINE)
PREFIX = re.compile(r"^INFO *:? ?(?:flwr [^|]*\|[^|]*\| ?)?", re.MULTILINE)
LOSSES = (  # the first one that is there is read if the user chooses none
    "losses_centralized",
    r"evaluate_metrics_serverapp\..*loss.*",
    "losses_distributed",
    r"evaluate_metrics_clientapp\..*loss.*",
)
WRONG = (TypeError, ValueError, SyntaxError, AttributeError, LookupError, RecursionError, MemoryError)


def read_flower(path: Path, columns: Columns | None) -> Log:
    """Losses under the names of the history, and metrics as `<name>.<metric>`."""
    text, log = read_text(path, f"the log {path}", LARGEST), Log(str(path))
    try:
        document = json.loads(text) if text.lstrip().startswith("{") else dict(_printed(text))
        if not document.keys() & set(SECTIONS.values()):
            raise ValueError("it has no attribute such as losses_centralized")
        for name in SECTIONS.values():
            for metric, pairs in _metrics(name, document.get(name)):
                for at, value in pairs:
                    log.add(metric, "", float(at), float(value))
    except FedboundsError:
        raise
    except WRONG as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise FedboundsError(f"{path} is not the history of a Flower server: {why[:120]}") from None
    loss = next((name for known in LOSSES for name in log.metrics if re.fullmatch(known, name)), None)
    if loss is not None:
        log.columns = {"train_loss": loss}
        log.notes.append(f"train_loss is {loss}; a loss on test data is not the f of a theorem")
    return log


def _printed(text: str) -> Iterator[tuple[str, Any]]:
    """The attributes in the printed text."""
    text = PREFIX.sub("", text)
    headings = [*HEADING.finditer(text)]
    if not headings:
        raise ValueError(f"it has no heading such as {next(iter(SECTIONS))}")
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        body = text[heading.end() : following.start() if following else len(text)].strip()
        pairs = re.findall(r"round (\d+): (\S+)", body)
        if pairs or body.startswith("{"):
            yield SECTIONS[heading[1]], pairs or ast.literal_eval(body[: body.rindex("}") + 1])


def _metrics(name: str, values: Any) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """Each metric of an attribute, with its rounds and values; metrics that are no numbers are left out."""
    if isinstance(values, list):
        yield name, values
    elif isinstance(values, Mapping) and all(isinstance(pairs, list) for pairs in values.values()):
        yield from ((f"{name}.{metric}", pairs) for metric, pairs in values.items() if _are_numbers(pairs))
    elif isinstance(values, Mapping):  # round -> metric -> value
        metrics = dict.fromkeys(metric for found in values.values() for metric in found)
        for metric in metrics:
            pairs = [(at, found[metric]) for at, found in values.items() if metric in found]
            if _are_numbers(pairs):
                yield f"{name}.{metric}", pairs


def _are_numbers(pairs: list[Any]) -> bool:
    try:
        return all(isinstance(float(value), float) for _, value in pairs)
    except (TypeError, ValueError):
        return False
