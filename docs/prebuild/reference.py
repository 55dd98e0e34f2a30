"""The reference: tables of the public names, and a page for each module, read from its source."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import griffe

import fedbounds

ROOT = Path(__file__).resolve().parents[2]
OPTIONS: Any = {"returns_multiple_items": False, "returns_named_value": False}
LAYERS = ("bounds", "empirical", "figures")
TITLES = {
    "parameters": "Arguments",
    "attributes": "Attributes",
    "returns": "Returns",
    "yields": "Yields",
    "raises": "Raises",
}


@cache
def package() -> griffe.Module:
    """All of fedbounds, read and not imported."""
    loaded = griffe.load("fedbounds", search_paths=[ROOT], allow_inspection=False)
    assert isinstance(loaded, griffe.Module)
    return loaded


def reference_pages() -> dict[str, str]:
    """The page of every module of a layer, by its name."""
    layers = (package().modules[name] for name in LAYERS)
    return {page_name(module.path): "\n\n".join(page(module)) for layer in layers for module in modules(layer)}


def page_name(module: str) -> str:
    """The name of the page of a module; empty for one without a page."""
    _, layer, *inside = [*module.split("."), ""]
    return f"reference/{module}.md" if layer in LAYERS and not any(part.startswith("_") for part in inside) else ""


def public_names() -> dict[str, list[str]]:
    """Every public name by its module: those of `fedbounds`, and of the modules that it offers."""
    found = {"fedbounds": [name for name in fedbounds.__all__ if name not in fedbounds.MODULES]}
    for name in fedbounds.MODULES:
        top = importlib.import_module(f"fedbounds.{name}")
        inside = [f"{top.__name__}.{each.name}" for each in pkgutil.iter_modules(getattr(top, "__path__", ()))]
        for module in (top, *map(importlib.import_module, inside)):
            names = [name for name, held in vars(module).items() if name[0] != "_" and not inspect.ismodule(held)]
            if names:
                found[module.__name__] = sorted(names)
    return found


def public_tables() -> str:
    """A table for each public module: its names, with links to the pages of their modules, and first sentences."""
    parts = []
    for module, names in public_names().items():
        home = importlib.import_module(module)
        rows = []
        for name in sorted(names):
            found = getattr(home, name)
            documented = inspect.isclass(found) or inspect.isfunction(found)
            said = (inspect.getdoc(found) or "").partition("\n\n")[0].replace("\n", " ") if documented else ""
            link = page_name(found.__module__) if documented else ""
            place = f"[`{name}`]({link})" if link else f"`{name}`"
            rows.append(f"| {place} | {said.replace('|', '&#124;')} |")
        about = (inspect.getdoc(home) or "").partition("\n")[0]
        parts.append("\n".join([f"## {module}", "", about, "", "| name | |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def modules(module: griffe.Module) -> Iterator[griffe.Module]:
    """A module and all that is public in it, modules before packages."""
    yield module
    inside = (each for name, each in sorted(module.modules.items()) if not (each.is_alias or name.startswith("_")))
    for each in sorted(inside, key=lambda each: bool(each.modules)):
        yield from modules(each)


def page(module: griffe.Module) -> Iterator[str]:
    """A module: what it says of itself, then its public functions and classes as they stand in the source."""
    yield f"# {module.path}"
    yield from docstring_parts(module)
    for member in documented(module):
        yield f"## {member.name}"
        yield from described(member)
        for method in documented(member) if isinstance(member, griffe.Class) else ():
            yield f"### {member.name}.{method.name}"
            yield from described(method)


def documented(whole: griffe.Module | griffe.Class) -> Iterator[griffe.Class | griffe.Function | griffe.Attribute]:
    """What is defined here, public and explained, in the order of the source."""
    for name, member in whole.members.items():
        defined = isinstance(member, griffe.Class | griffe.Function | griffe.Attribute)
        if defined and member.docstring and not name.startswith("_"):
            yield member


def described(member: griffe.Class | griffe.Function | griffe.Attribute) -> Iterator[str]:
    """One function, class or constant: how it is written and what it says."""
    yield f"```python\n{signature(member.source)}\n```"
    yield from docstring_parts(member)


def signature(source: str) -> str:
    """The head of a definition; of a class its fields too, and how it is made."""
    source = dedent(source)
    (node,) = ast.parse(source).body
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return source
    lines = source.splitlines()
    parts = ["\n".join(lines[: node.body[0].lineno - 1] or lines[:1])]
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, ast.AnnAssign) and not ast.unparse(part.target).startswith("_"):
            parts.append("\n".join(lines[part.lineno - 1 : part.end_lineno]))
        elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
            parts.append("\n".join(lines[part.lineno - 1 : max(part.body[0].lineno - 1, part.lineno)]))
    return "\n".join(parts)


def docstring_parts(member: griffe.Object) -> Iterator[str]:
    """A docstring, section by section."""
    if member.docstring is None:
        return
    text = re.sub(r"^( *)Example:$", r"\1Examples:", member.docstring.value, flags=re.MULTILINE)
    docstring = griffe.Docstring(text, parent=member)
    for section in griffe.parse_google(docstring, warnings=False, **OPTIONS):
        kind, value = section.kind.value, section.value
        if kind == "text":
            yield value
        elif kind == "examples":
            yield from (f"```pycon\n{text}\n```" if kind.value == "examples" else text for kind, text in value)
        elif kind == "admonition":
            yield f"**{section.title}**\n\n{value.description}"
        elif kind in ("returns", "yields"):
            yield f"**{TITLES[kind]}**: " + " ".join(each.description for each in value)
        else:
            yield f"**{TITLES[kind]}**"
            yield "\n".join(f"- {item(each)}" for each in value)


def item(each: Any) -> str:
    """One argument, attribute or exception."""
    name = each.annotation if isinstance(each, griffe.DocstringRaise) else each.name
    return f"`{name}`: " + each.description.replace("\n", "\n  ")
