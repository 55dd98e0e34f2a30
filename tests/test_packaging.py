"""What is shipped: packages, their data, the version, the pins, and the wheel in a clean environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from sysconfig import get_path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fedbounds import __version__

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("bounds", "empirical", "figures")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def files(top: str) -> set[Path]:
    """Every file of a package, relative to the root, without what Python leaves behind."""
    return {p.relative_to(ROOT) for p in (ROOT / top).rglob("*") if p.is_file() and "__pycache__" not in p.parts}


def test_every_folder_of_python_files_is_a_package() -> None:
    folders = {path.parent for top in TOPS for path in files(top) if path.suffix == ".py"}
    assert not [folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()]


def test_the_folders_have_one_name_each() -> None:
    """In a checkout the public API holds links to them, and nothing else that is installed has a name of its own."""
    assert {top: os.readlink(ROOT / "fedbounds" / top) for top in TOPS} == {top: f"../{top}" for top in TOPS}
    assert all(not Path(top).is_absolute() and (ROOT / "fedbounds" / top / "__init__.py").is_file() for top in TOPS)


def test_everything_beside_the_python_files_is_package_data() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    data = {path for top in TOPS for path in files(top) if path.suffix != ".py"}
    assert data and all(any(path.match(glob) for glob in patterns) for path in data)
    assert (ROOT / "fedbounds" / "py.typed").is_file()


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == __version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\d\S*)", changelog, re.MULTILINE)[1] == __version__


def test_every_requirement_that_make_installs_is_pinned_within_its_range() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
    for extra in Requirement(extras["all"][0]).extras:
        asked += [Requirement(line) for line in extras[extra]]
    assert pins["torch"] == "2.13.0"
    assert not [str(r) for r in asked if not r.specifier.contains(pins.get(canonicalize_name(r.name), "0"))]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and source archive, built from a copy, so that no leftover of an earlier build slips in."""
    return made(tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """The wheel."""
    (built,) = dist.glob("*.whl")
    return built


def made(out: Path, source: Path) -> Path:
    """What `make dist` makes of a copy of the sources."""
    shipped = re.search(r"^SHIPPED := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split()
    for name in ("Makefile", *shipped):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    words = ["make", "dist", "STAMP=", f"VENV={sys.prefix}", f"DIST={out}", "EPOCH=1700000000"]
    done = subprocess.run(words, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory elsewhere with an environment of the wheel and its core dependencies, nothing else."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    venv.create(elsewhere / "venv", with_pip=True)
    pins = str(ROOT / "constraints.txt")
    install = [
        str(elsewhere / "venv/bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "-c",
        pins,
        str(wheel),
    ]
    done = subprocess.run(install, capture_output=True, text=True, cwd=elsewhere)
    assert done.returncode == 0, done.stdout + done.stderr
    return elsewhere


@pytest.fixture(scope="module")
def furnished(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory elsewhere with an environment of the wheel alone; its dependencies are those of this environment."""
    elsewhere = tmp_path_factory.mktemp("furnished")
    venv.create(elsewhere / "venv", with_pip=False)
    python = str(elsewhere / "venv/bin/python")
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    done = subprocess.run(install, capture_output=True, text=True, cwd=elsewhere)
    assert done.returncode == 0, done.stdout + done.stderr
    (site,) = elsewhere.glob("venv/lib/python*/site-packages")
    # A line of a .pth file comes after the wheel on the path, and the .pth files in the folder it names are not read.
    (site / "dependencies.pth").write_text("\n".join({get_path("purelib"), get_path("platlib")}))
    return elsewhere


def other_pythons() -> list[str]:
    """Those of the newer versions that the package names and that are on this machine."""
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    found = [path for version in named if (path := shutil.which(f"python{version}"))]
    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return [
        p for p in found if Path(p).name != here and not subprocess.run([p, "-c", ""], capture_output=True).returncode
    ]


def fedbounds(clean: Path, *words: str) -> subprocess.CompletedProcess[str]:
    unwanted = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    return subprocess.run(
        [str(clean / "venv/bin/fedbounds"), *words],
        cwd=clean,
        env=environment,
        capture_output=True,
        text=True,
    )


def one_line_naming_an_extra(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 2 and done.stderr.count("\n") == 1 and "pip install 'fedbounds[" in done.stderr


@pytest.mark.wheel
def test_two_builds_are_alike_byte_for_byte(dist: Path, tmp_path: Path) -> None:
    """From files of other times, and made by somebody with another umask."""
    (tmp_path / "source").mkdir()
    before = os.umask(0o027)
    try:
        again = made(tmp_path / "again", tmp_path / "source")
    finally:
        os.umask(before)
    built = {path.name: path.read_bytes() for path in dist.iterdir()}
    assert {path.suffix for path in dist.iterdir()} == {".whl", ".gz"}
    assert {path.name: path.read_bytes() for path in again.iterdir()} == built


@pytest.mark.wheel
def test_the_source_archive_makes_the_wheel(dist: Path, tmp_path: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    done = subprocess.run(build, capture_output=True, text=True, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"})
    assert done.returncode == 0, done.stdout + done.stderr
    (again,), (built,) = tmp_path.glob("*.whl"), dist.glob("*.whl")
    assert zipfile.ZipFile(again).testzip() is None
    assert {i.filename: i.CRC for i in zipfile.ZipFile(again).infolist()} == {
        i.filename: i.CRC for i in zipfile.ZipFile(built).infolist()
    }


@pytest.mark.wheel
def test_a_checkout_without_links_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Where links are checked out as text files, as on Windows; the cached forms are added by `make dist` alone."""
    source = tmp_path / "source"
    for name in ("fedbounds", *TOPS):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for top in TOPS:
        (source / "fedbounds" / top).unlink()
        (source / "fedbounds" / top).write_text(f"../{top}")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (again,) = tmp_path.glob("*.whl")
    kept = {i.filename: i.CRC for i in zipfile.ZipFile(wheel).infolist() if not i.filename.endswith("views.json")}
    found = {i.filename: i.CRC for i in zipfile.ZipFile(again).infolist()}
    record = next(name for name in kept if name.endswith("/RECORD"))
    assert found.keys() == kept.keys() and not [n for n in kept if n != record and found[n] != kept[n]]
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        assert not [m.name for m in packed.getmembers() if m.issym()]


@pytest.mark.wheel
def test_the_core_needs_no_torch_and_brings_none(clean: Path) -> None:
    found = subprocess.run([clean / "venv/bin/python", "-c", "import torch"], cwd=clean, capture_output=True, text=True)
    assert "ModuleNotFoundError" in found.stderr
    assert not any(Requirement(line).name == "torch" for line in PROJECT["project"]["dependencies"])


@pytest.mark.wheel
def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    own = [p for p in (ROOT / "fedbounds").iterdir() if not p.is_symlink() and p.name != "__pycache__"]
    inside = [q for p in own for q in (p.rglob("*") if p.is_dir() else (p,))]
    front = {q.relative_to(ROOT).as_posix() for q in inside if q.is_file() and "__pycache__" not in q.parts}
    papers = {
        path.parent for path in files("bounds") if path.name == "ledger.json" and path.parent.name != "references"
    }
    views = {f"fedbounds/{paper.as_posix()}/views.json" for paper in papers}
    assert shipped == front | views | {f"fedbounds/{path.as_posix()}" for top in TOPS for path in files(top)}
    assert f"fedbounds-{__version__}-" in wheel.name


@pytest.mark.wheel
def test_the_wheel_evaluates_a_theorem_in_a_clean_environment(clean: Path) -> None:
    constants = "L=1 F=1 I=2 P=4 T=1000 gamma=0.001 eta=2 rho=0.5 sigma=1 nu=1 beta=1 delta=0"
    settings = [word for constant in constants.split() for word in ("--set", constant)]
    done = fedbounds(clean, "eval", "arbitrary-participation/theorem-3.1", *settings, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["value"] > 0
    assert sum(document["terms"].values()) == pytest.approx(document["value"])


@pytest.mark.wheel
def test_the_wheel_knows_its_theorems_without_sympy(clean: Path) -> None:
    """The views that it ships are of its own sources."""
    code = "from fedbounds.bounds.evaluation.form_cache import read_cached\nimport sys\nassert read_cached(sys.argv[1])"
    code += "\nassert 'sympy' not in sys.modules"
    for key in ("arbitrary-participation/theorem-3.1", "fedau/theorem-2", "fedmrn/theorem-1", "tdcd/theorem-1"):
        python = [str(clean / "venv/bin/python"), "-c", code, key]
        nowhere = {**os.environ, "XDG_CACHE_HOME": str(clean / "nowhere"), "PYTHONPATH": ""}
        done = subprocess.run(python, cwd=clean, capture_output=True, text=True, env=nowhere)
        assert done.returncode == 0, done.stderr


@pytest.mark.wheel
def test_the_wheel_evaluates_the_same_under_every_other_python_here(wheel: Path, clean: Path, tmp_path: Path) -> None:
    install = ["-m", "pip", "install", "--quiet", "--no-compile", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    words = "optimize arbitrary-participation/theorem-3.1 --over gamma,eta --within eta=1:100 T=800 L=1 F=5 I=2 P=2 "
    words += "rho=0.7 sigma=1 nu=2 beta=0.5 delta=0"
    here = fedbounds(clean, *words.split())
    assert here.returncode == 0, here.stderr
    for python in other_pythons():
        other = tmp_path / Path(python).name
        subprocess.run([python, "-m", "venv", other / "venv"], check=True)
        done = subprocess.run([other / "venv/bin/python", *install], capture_output=True, text=True, cwd=other)
        assert done.returncode == 0, done.stdout + done.stderr
        assert fedbounds(other, *words.split()).stdout == here.stdout


@pytest.mark.wheel
def test_every_command_of_the_wheel_explains_itself_or_names_the_extra_it_lacks(clean: Path) -> None:
    listing = fedbounds(clean, "--help").stdout.partition("Commands:")[2]
    commands = re.findall(r"^  ([a-z][a-z-]*)  ", listing, re.MULTILINE)
    assert {"eval", "list", "show"} <= set(commands)
    for name in commands:
        done = fedbounds(clean, name, "--help")
        assert done.returncode == 0 or one_line_naming_an_extra(done), f"{name}: {done.stderr}"
    if "audit" in commands:
        done = fedbounds(clean, "audit", "--json")
        assert done.returncode == 0 or one_line_naming_an_extra(done), done.stderr


@pytest.mark.wheel
def test_the_demo_without_torch_is_one_line_that_says_what_to_install(clean: Path) -> None:
    done = fedbounds(clean, "demo", "--out", "demo")
    assert one_line_naming_an_extra(done), done.stderr
    assert not (clean / "demo").exists()


@pytest.mark.wheel
def test_the_wheel_reports_on_a_paper_and_says_what_a_report_on_runs_needs(clean: Path) -> None:
    done = fedbounds(clean, "report", "--paper", "fedmrn", "--out", "page", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["written"] == ["page/index.html", "page/report.json"]  # a wheel has no figures
    (clean / "sweep.toml").write_text("rounds = 1\n")
    assert one_line_naming_an_extra(fedbounds(clean, "report", "sweep.toml", "--out", "runs"))


@pytest.mark.wheel
def test_the_demo_of_the_wheel_writes_its_figures_and_tables(furnished: Path) -> None:
    names = ["fedbounds", *(f"fedbounds.{top}" for top in TOPS)]
    where = f"import sys, {', '.join(names)}; print(*(sys.modules[n].__file__ for n in {names}))"
    python = furnished / "venv/bin/python"
    found = subprocess.run([python, "-c", where], cwd=furnished, capture_output=True, text=True)
    assert found.returncode == 0 and len(found.stdout.split()) == 4, found.stderr
    assert all(Path(file).is_relative_to(furnished) for file in found.stdout.split()), found.stdout
    done = fedbounds(furnished, "demo", "--scale", "smoke", "--workers", "1", "--out", "demo", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert len(document["levels"]) == 4 and len(document["claims"]) > 0
    sharp = document["theorem"]["sharp"]
    assert sharp["guarantee"] and 0 < sharp["measured"] < sharp["bound"]
    assert {Path(path).suffix for path in document["written"]} == {".png", ".csv", ".json"}
    assert all((furnished / path).stat().st_size > 0 for path in document["written"])


@pytest.mark.wheel
def test_folders_of_the_user_with_the_same_names_do_no_harm(clean: Path) -> None:
    """A script beside a bounds.py, an empirical.py and a package figures of its own."""
    home = clean / "script"
    (home / "figures").mkdir(parents=True)
    for name in ("bounds.py", "empirical.py", "figures/__init__.py"):
        (home / name).write_text("raise ImportError('the user's own')\n")
    script = (
        "import fedbounds; print(fedbounds.load('fedau/theorem-2').key); from fedbounds.figures.charts import theory"
    )
    (home / "script.py").write_text(script)
    done = subprocess.run([clean / "venv/bin/python", "script.py"], cwd=home, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "fedau/theorem-2\n", done.stderr
