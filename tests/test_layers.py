"""The rules of the project, read from the sources: layers, start-up, safety and size."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from prebuild.reference import public_names

import fedbounds
from fedbounds.empirical.algorithms import algorithms

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("bounds", "empirical", "figures")
LIBRARY = [
    *(ROOT / "fedbounds").glob("*.py"),
    *(ROOT / "fedbounds" / "cli").glob("*.py"),
    *(path for top in PACKAGES for path in sorted((ROOT / top).rglob("*.py"))),
]
EVERYTHING = [
    *LIBRARY,
    *(path for top in ("tests", "benchmarks") for path in sorted((ROOT / top).rglob("*.py"))),
]

# What a layer may import beside the standard library; each layer may also import what the one below it may.
BOUNDS = {
    "fedbounds.bounds",
    "numpy",
    "scipy",
    "sympy",
    "mpmath",
    "click",
    "rich",
    "pandas",
    "latex2mathml",
    "z3",
    "flint",
}
FONTS = {"matplotlib.font_manager", "matplotlib.textpath"}  # whose outlines glyphs are made of
EMPIRICAL = (
    BOUNDS
    | FONTS
    | {"fedbounds.empirical", "torch", "sklearn", "PIL", "xarray", "pandas", "hypothesis", "flwr", "PEPit", "cvxpy"}
    | {"distributed", "tensorboard", "h5py"}
)
FIGURES = EMPIRICAL | {"fedbounds.figures", "matplotlib", "mpl_toolkits", "jinja2", "markupsafe"}
ALLOWED = {"bounds": BOUNDS, "empirical": EMPIRICAL, "figures": FIGURES}

PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
PICKLING_METHODS = {"read_pickle", "to_pickle"}
STRING_EVALUATORS = {"eval", "exec", "sympify", "parse_expr"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(module: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a module, breadth first: a call comes before its function."""
    found = [module]
    for node in found:  # which grows
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and name != "ctx":
                found.append(value)
    return tuple(found)


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


@cache
def imports(module: ast.Module) -> list[tuple[ast.AST, str]]:
    """Every imported module, wherever in the file: statements, and `import_module` with a literal name."""
    return [*find_imports(module)]


def find_imports(module: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in nodes(module):
        match node:
            case ast.Import():
                yield from ((node, alias.name) for alias in node.names)
            case ast.ImportFrom(module=str(name), level=0):
                yield node, name
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node, name


def top(name: str) -> str:
    """The package that a module belongs to: of our own names the first two words."""
    words = name.split(".")
    return ".".join(words[:2]) if words[0] == "fedbounds" else words[0]


def forbidden_imports(module: ast.Module, allowed: set[str]) -> list[tuple[ast.AST, str]]:
    """Imports outside the standard library and `allowed`."""
    legal = allowed | sys.stdlib_module_names
    return [(node, name) for node, name in imports(module) if not {name, top(name)} & legal]


def unsafe_loads(module: ast.Module) -> list[tuple[ast.AST, str]]:
    """Calls of numpy's and torch's `load` without the keyword that keeps pickle out."""
    wanted = {
        "np": ("allow_pickle", False),
        "numpy": ("allow_pickle", False),
        "torch": ("weights_only", True),
    }
    found: list[tuple[ast.AST, str]] = []
    for node in nodes(module):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=library), attr="load")) if library in wanted:
                keyword, value = wanted[library]
                given = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
                if given.get(keyword) is not value:
                    found.append((node, f"{library}.load without {keyword}={value}"))
    return found


def string_evaluations(module: ast.Module) -> list[tuple[ast.AST, str]]:
    """Uses of Python's or sympy's evaluators of strings; `sympify(..., strict=True)` refuses strings."""
    found: list[tuple[ast.AST, str]] = []
    strict: set[int] = set()
    for node in nodes(module):
        if id(node) in strict:
            continue
        match node:
            case ast.Call(keywords=[ast.keyword(arg="strict", value=ast.Constant(value=True))]):
                strict.add(id(node.func))
            case ast.Name(id=name) if name in STRING_EVALUATORS:
                found.append((node, name))
            case ast.Attribute(attr="sympify" | "parse_expr" as name):
                found.append((node, name))
            case ast.ImportFrom(names=names):
                found += [(node, alias.name) for alias in names if alias.name in STRING_EVALUATORS]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="sp" | "sympy"), attr="S")):
                found.append((node, "sympy.S(...)"))
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_dependencies_point_downward_only(package: str) -> None:
    paths = sorted((ROOT / package).rglob("*.py"))
    wrong = [
        f"{place(path, node)} imports {name}"
        for path in paths
        for node, name in forbidden_imports(tree(path), ALLOWED[package])
    ]
    assert paths and not wrong, "\n".join(wrong)


def named_papers(module: ast.Module) -> list[tuple[ast.AST, str]]:
    """Imports of one paper's things, on any floor, from its package or out of the package of all papers."""
    found: list[tuple[ast.AST, str]] = []
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom) and node.module in ROOMS:
            found += [(node, f"{node.module}.{alias.name}") for alias in node.names]
    found += [(node, name) for node, name in imports(module) if name.startswith(tuple(f"{room}." for room in ROOMS))]
    return [(node, name) for node, name in found if name.split(".")[3] in PAPERS]


ROOMS = tuple(f"fedbounds.{package}.papers" for package in PACKAGES)
PAPERS = {path.parent.name for path in (ROOT / "bounds" / "papers").glob("*/__init__.py")}


PUBLIC = {"papers", *(path.name for path in (ROOT / "fedbounds").glob("*.py") if path.name != "command_line.py")}


def test_kernels_know_no_paper() -> None:
    kernels = [path for path in LIBRARY if path.relative_to(ROOT).parts[1] not in PUBLIC]
    wrong = [f"{place(path, node)} imports {what}" for path in kernels for node, what in named_papers(tree(path))]
    assert PAPERS and kernels and not wrong, "\n".join(wrong)


def test_a_paper_knows_no_other_paper() -> None:
    inside = [(path, path.relative_to(ROOT).parts) for path in LIBRARY]
    rooms = [(path, parts[2]) for path, parts in inside if parts[1] == "papers" and parts[2] in PAPERS]
    wrong = [
        f"{place(path, node)} imports {what}"
        for path, paper in rooms
        for node, what in named_papers(tree(path))
        if what.split(".")[3] != paper
    ]
    assert {paper for _, paper in rooms} == PAPERS and not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        "from fedbounds.bounds.papers.fedau.proof import weights",
        "from fedbounds.bounds.papers import fedau",
        "def late():\n    import fedbounds.empirical.papers.fedau.run",
        "import importlib\nimportlib.import_module('fedbounds.figures.papers.fed_norm_sgda.drawing')",
    ],
)
def test_an_import_of_one_papers_things_is_found(source: str) -> None:
    assert named_papers(ast.parse(source))
    assert not named_papers(ast.parse("from fedbounds.empirical.comparison.paper_runs import PaperRuns"))


def imported_modules(sources: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Each module's imports among these modules, wherever they stand: early, late or for types."""
    found: dict[str, set[str]] = {}
    for name, module in sources.items():
        names = set[str]()
        for node, what in imports(module):
            inside = {f"{what}.{alias.name}" for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            names |= inside & sources.keys() or {what}
        found[name] = (names & sources.keys()) - {name}
    return found


CHECKERS = ("claim_set", "counterexample_checker", "dimension_checker", "proof_step_checker", "limit_checker")
ENTRIES, LEVELS = 12, 8  # at most: at the top of a layer, and of packages that import each other


def package(name: str) -> str:
    """The package of a layer that a module belongs to: the first three words, or the module itself at the top."""
    return ".".join(name.split(".")[:3])


def package_levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """How many packages stand below each, at most; packages that import in a circle have no level."""
    above: dict[str, set[str]] = {package(name): set() for name in graph}
    for name, names in graph.items():
        above[package(name)] |= {package(other) for other in names} - {package(name)}
    levels: dict[str, int] = {}
    while ready := [p for p in above if p not in levels and above[p] <= levels.keys()]:
        levels |= {p: 1 + max((levels[q] for q in above[p]), default=0) for p in ready}
    return levels


@pytest.mark.parametrize("layer", PACKAGES)
def test_a_layer_has_few_packages_on_few_levels(layer: str) -> None:
    entries = {path.name for path in (ROOT / layer).iterdir() if not path.name.startswith(("_", "."))}
    assert len(entries) <= ENTRIES, sorted(entries)
    graph = library_graph()
    inside = {name: {n for n in names if n.split(".")[1] == layer} for name, names in graph.items()}
    inside = {name: names for name, names in inside.items() if name.split(".")[1:2] == [layer]}
    levels = package_levels(inside)
    assert levels.keys() == {package(name) for name in inside}, "packages import in circles"
    assert max(levels.values()) <= LEVELS, levels


@pytest.mark.parametrize("layer", PACKAGES)
def test_the_tests_of_a_layer_mirror_its_packages(layer: str) -> None:
    folders = {path.name for path in (ROOT / "tests" / layer).iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= {path.name for path in (ROOT / layer).iterdir()}
    assert not [path.name for path in (ROOT / "tests" / layer).glob("test_*.py")]


def test_packages_in_a_circle_have_no_level() -> None:
    graph = {"f.b.p.x": {"f.b.q.y"}, "f.b.q.y": set(), "f.b.q.z": {"f.b.p.w"}, "f.b.p.w": set(), "f.b.r": {"f.b.r.s"}}
    assert package_levels(graph) == {"f.b.r": 1}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The largest sets of modules that reach one another."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, waiting = set[str](), [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    rings = {frozenset(b for b in reached[a] if a in reached[b]) for a in graph if a in reached[a]}
    return [set(ring) for ring in rings]


def library_modules() -> dict[str, ast.Module]:
    """Every module of the library by its name."""
    inside = [path.relative_to(ROOT).with_suffix("") for path in LIBRARY]
    names = [p.parts if p.parts[0] in PACKAGES else p.parts[1:] for p in inside]
    places = {
        ".".join(["fedbounds", *name]).removesuffix(".__init__"): p for name, p in zip(names, inside, strict=True)
    }
    return {name: tree(ROOT / place.with_suffix(".py")) for name, place in places.items()}


@cache
def library_graph() -> dict[str, set[str]]:
    return imported_modules(library_modules())


def test_modules_do_not_import_in_circles() -> None:
    assert not circles(library_graph())


def test_a_circle_through_a_late_import_and_a_type_is_found() -> None:
    sources = {
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from b import B",
        "b": "def late():\n    import c",
        "c": "from a import A",
        "d": "import a",
    }
    assert circles(imported_modules({name: ast.parse(text) for name, text in sources.items()})) == [{"a", "b", "c"}]


def test_every_relative_import_stays_out_so_that_layers_can_be_read() -> None:
    wrong = [
        place(path, node)
        for path in LIBRARY
        for node in nodes(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level > 0
    ]
    assert not wrong, "imports are absolute: " + ", ".join(wrong)


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("import torch", "bounds"),
        ("def late():\n    from fedbounds.empirical.simulation.trace import Trace", "bounds"),
        ("import importlib\nimportlib.import_module('fedbounds.figures.charts.overlay')", "empirical"),
        ("import matplotlib.pyplot as plt", "empirical"),
        ("from fedbounds import main", "figures"),
    ],
)
def test_an_import_that_points_upward_is_found(source: str, package: str) -> None:
    assert forbidden_imports(ast.parse(source), ALLOWED[package])


def test_nothing_that_ships_pickles() -> None:
    wrong: list[str] = []
    for path in LIBRARY:
        module = tree(path)
        found = [(node, name) for node, name in imports(module) if name.split(".")[0] in PICKLES]
        found += unsafe_loads(module)
        found += [(n, n.attr) for n in nodes(module) if isinstance(n, ast.Attribute) and n.attr in PICKLING_METHODS]
        wrong += [f"{place(path, node)} {what}" for node, what in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    ["np.load(f)", "np.load(f, allow_pickle=True)", "torch.load(f)", "torch.load(f, weights_only=False)"],
)
def test_a_load_that_would_unpickle_is_found(source: str) -> None:
    assert unsafe_loads(ast.parse(source))
    assert not unsafe_loads(ast.parse("np.load(f, allow_pickle=False); torch.load(f, weights_only=True)"))


def test_no_string_is_ever_evaluated() -> None:
    wrong = [f"{place(path, n)} {what}" for path in LIBRARY for n, what in string_evaluations(tree(path))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("source", ["eval(s)", "sp.sympify(s)", "sp.S('x')", "from sympy import sympify as parse"])
def test_an_evaluation_of_a_string_is_found(source: str) -> None:
    assert string_evaluations(ast.parse(source))
    assert not string_evaluations(ast.parse("model.eval(); sp.S.Half; notation.S; sp.sympify(x, strict=True)"))


def opened_files(module: ast.Module) -> list[tuple[ast.AST, str]]:
    """Where a file is opened by its path, without a look at what it is."""
    found: list[tuple[ast.AST, str]] = []
    for node in nodes(module):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                found.append((node, "open"))
            case ast.Call(func=ast.Attribute(attr="read_text" | "read_bytes" as name, value=value)):
                if not (isinstance(value, ast.Name) and value.id == "reading"):
                    found.append((node, name))
            case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(value=str(mode)), *_]):
                found.append((node, f"open({mode!r})"))
    return found


# Files in the package or the cache are ours; `fedbounds.bounds.inputs.user_files` alone opens what a user names.
OPENERS = {
    "bounds/inputs/data_files.py",
    "bounds/inputs/user_files.py",
    "bounds/inputs/atomic_files.py",
    "bounds/evaluation/form_cache.py",
    "bounds/audit/ledger.py",
    "bounds/audit/audit_rows.py",
    "fedbounds/cli/completion.py",
    "bounds/audit/certificate_checker.py",  # a program of its own, which imports nothing of ours
    "figures/explorer/document.py",
    "empirical/data/synthetic_images.py",
    "empirical/sweep/keys.py",
    "figures/papers/arbitrary_participation/experiments.py",
    "figures/charts/networks.py",
    "figures/charts/printed.py",
}


def test_files_of_users_are_opened_in_one_place() -> None:
    paths = [path for path in LIBRARY if path.relative_to(ROOT).as_posix() not in OPENERS]
    wrong = [f"{place(p, n)} {what}" for p in paths for n, what in opened_files(tree(p))]
    assert not wrong, "\n".join(wrong)


# `fedbounds.bounds.inputs.output_files` alone writes what users name; these write caches, ledgers, views, and results
# under the keys of their runs.
WRITERS = {
    "bounds/inputs/atomic_files.py",
    "bounds/inputs/output_files.py",
    "bounds/audit/audit_rows.py",
    "bounds/audit/ledger.py",
    "bounds/evaluation/form_cache.py",
    "empirical/data/synthetic_images.py",
    "empirical/sweep/executor.py",
    "empirical/sweep/store.py",
}


def written_files(module: ast.AST) -> list[tuple[ast.AST, str]]:
    """Where a module writes a file, or imports what does."""
    found: list[tuple[ast.AST, str]] = []
    for node in nodes(module):
        match node:
            case ast.ImportFrom(module="fedbounds.bounds.inputs.atomic_files", names=names):
                found += [(node, n.name) for n in names if n.name.startswith("write")]
            case ast.Call(func=ast.Attribute(attr="write_text" | "write_bytes" | "tofile" | "touch" as name)):
                found.append((node, name))
            case ast.Call(func=ast.Name(id="open"), args=[_, ast.Constant(value=str(mode)), *_]):
                found += [(node, f"open({mode!r})")] * bool(set(mode) & {*"wax+"})
            case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(value=str(mode)), *_]):
                found += [(node, f"open({mode!r})")] * bool(set(mode) & {*"wax+"})
    return found


def test_files_for_users_are_written_in_one_place() -> None:
    paths = [path for path in LIBRARY if path.relative_to(ROOT).as_posix() not in WRITERS]
    wrong = [f"{place(p, n)} {what}" for p in paths for n, what in written_files(tree(p))]
    assert not wrong, "\n".join(wrong)
    assert (
        len(
            written_files(
                ast.parse("import x\nfrom fedbounds.bounds.inputs.atomic_files import write_file\nopen(p, 'wb')")
            )
        )
        == 2
    )


@pytest.mark.parametrize("source", ["open(path)", "path.open('rb')", "path.read_text()", "Path(p).read_bytes()"])
def test_a_file_that_is_opened_unseen_is_found(source: str) -> None:
    assert opened_files(ast.parse(source))
    assert not opened_files(ast.parse("read_text(path, 'it', 10); open_regular(path, 'it', 10); Image.open(file)"))


def test_libraries_do_not_print() -> None:
    wrong = [
        place(path, node)
        for path in LIBRARY
        if path.name != "certificate_checker.py" and path.parent.name != "cli"
        for node in nodes(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_is_longer_than_six_hundred_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in EVERYTHING}
    of_its_own = "bounds/audit/certificate_checker.py"  # one file; its own test counts its lines of code
    assert not {name: length for name, length in lengths.items() if length > 600 and not name.endswith(of_its_own)}


def test_every_module_is_named_for_what_it_holds() -> None:
    empty_words = {"util", "utils", "helper", "helpers", "misc", "common", "manager", "managers"}
    assert not [str(path) for path in EVERYTHING if empty_words & {path.stem, path.parent.name}]


def modules_after(code: str) -> set[str]:
    """The names in `sys.modules` of a fresh interpreter after `code`."""
    report = "\nimport json, sys\nsys.stderr.write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code + report], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def command(*words: str) -> str:
    """Source code that runs the command line in process and goes on after it exits with status 0."""
    return f"""
import sys, fedbounds
sys.argv = ["fedbounds", *{list(words)!r}]
try:
    status = fedbounds.main()
except SystemExit as end:
    status = end.code
assert not status, status
"""


@pytest.mark.parametrize("code", ["import fedbounds", command("--help")], ids=["import", "help"])
def test_start_up_imports_nothing_heavy(code: str) -> None:
    loaded = modules_after(code)
    assert "fedbounds" in loaded
    assert not loaded & {"sympy", "scipy", "numpy", "torch", "matplotlib", "sklearn", "xarray", "pandas"}


def test_modules_that_take_long_to_import_are_imported_where_they_are_used() -> None:
    """Every process of a sweep would wait for them: `scipy.stats` alone takes longer than the library itself."""
    slow = ("scipy.stats", "scipy.io", "sklearn", "xarray", "pandas")
    wrong = [
        f"{place(path, node)} imports {name}"
        for path in LIBRARY
        if path.relative_to(ROOT).parts[0] != "figures"
        for node, name in imports(tree(path))
        if node in tree(path).body and f"{name}.".startswith(tuple(f"{one}." for one in slow))
    ]
    assert not wrong, "\n".join(wrong)


def test_evaluating_a_bound_loads_neither_torch_nor_matplotlib_nor_an_optimizer() -> None:
    constants = "L=1 F=1 I=2 P=4 T=1000 gamma=0.001 eta=2 rho=0.5 sigma=1 nu=1 beta=1 delta=0"
    settings = [word for constant in constants.split() for word in ("--set", constant)]
    loaded = modules_after(command("eval", "arbitrary-participation/theorem-3.1", *settings))
    assert not loaded & {"torch", "matplotlib", "scipy.optimize", "fedbounds.empirical", "fedbounds.figures"}
    checkers = {f"fedbounds.bounds.audit.{name}" for name in CHECKERS}
    assert "fedbounds.bounds.evaluation.evaluate" in loaded and not loaded & checkers


def test_the_public_api_gives_every_name_that_a_type_checker_sees() -> None:
    """A name that is typed and not given, or given and not typed, stands on one of two lists alone."""
    typed = {
        alias.name: str(node.module)
        for block in tree(ROOT / "fedbounds" / "__init__.py").body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == fedbounds.PLACES | dict.fromkeys(fedbounds.MODULES, "fedbounds")
    assert [name for name, module in typed.items() if not hasattr(importlib.import_module(module), name)] == []
    verbs = "evaluate optimize rounds compare simulate moments confront check_invariants check_weights check_minimax"
    assert {*verbs.split(), "load", "results", "overlay"} <= typed.keys()
    of_papers = "fedbounds.empirical.papers."  # the others are made by algorithm_from_spec
    ours = {each.__name__ for each in algorithms().values() if each.__module__.startswith(of_papers)}
    assert ours and ours <= {*public_names()["fedbounds.algorithms"]}


def test_the_public_names_are_few_and_stand_in_their_modules() -> None:
    names = public_names()
    assert sum(map(len, names.values())) <= 250
    for module, words in names.items():
        assert not [word for word in words if not hasattr(importlib.import_module(module), word)], module
