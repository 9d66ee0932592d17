"""What is built from the project holds all of it: wheels for pip, eggs for scrapyd."""

from __future__ import annotations

import configparser
import email
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.imports import ANNEXES, PACKAGE, PROJECT
from tests.support.running.twins import TWINS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source, without what was built in it."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    for folder in ("bigcrawl", "annexes"):
        shutil.copytree(PROJECT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return source


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel and the egg, built from the copy by the commands pip and scrapyd-client end in."""
    out = tmp_path_factory.mktemp("built")
    for command in ("bdist_egg", "bdist_wheel"):
        build(source, command, out)
    return out


def build(source: Path, command: str, out: Path, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "setup.py", "-q", command, "-d", str(out)],
        cwd=source, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def package_files() -> set[str]:
    """Every file of the package and of its annexes, as it should stand in an archive."""
    return {
        path.relative_to(folder.parent).as_posix()
        for folder in (PACKAGE, *ANNEXES)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }


def archive(built: Path, suffix: str) -> zipfile.ZipFile:
    (path,) = built.glob(f"*{suffix}")
    return zipfile.ZipFile(path)


@pytest.mark.parametrize("suffix", [".whl", ".egg"])
def test_archive_holds_every_file_of_the_package(built: Path, suffix: str) -> None:
    """Modules, Lua scripts and other data of the package are all in the archive, and no tests are."""
    with archive(built, suffix) as opened:
        names = {name for name in opened.namelist() if not name.endswith("/")}
    assert package_files() - names == set()
    assert any(name.endswith(".lua") for name in names)
    assert not any(name.startswith("tests/") for name in names)


def test_wheel_alone_has_the_reader_in_c(built: Path) -> None:
    """One wheel for all Pythons of a platform; an egg goes to others, and no library is read from a zip file."""
    (wheel,) = built.glob("*.whl")
    (egg,) = built.glob("*.egg")
    libraries = [[name for name in zipfile.ZipFile(path).namelist() if name.endswith(".so")] for path in (wheel, egg)]
    assert libraries[1] == []
    if len(TWINS) > 1:
        assert libraries[0] == ["bigcrawl/scan/compiled.abi3.so"]
        assert "-cp311-abi3-" in wheel.name


def test_wheel_without_a_compiler_has_the_rest(source: Path, tmp_path: Path) -> None:
    """Whether there is none, or it fails."""
    shutil.rmtree(source / "build", ignore_errors=True)
    build(source, "bdist_wheel", tmp_path / "none", CC="no-such-compiler", PATH=str(tmp_path))
    build(source, "bdist_wheel", tmp_path / "fails", CC="/bin/false")
    for path in tmp_path.rglob("*.whl"):
        names = set(zipfile.ZipFile(path).namelist())
        assert package_files() - names == set()
        assert not any(name.endswith(".so") for name in names)
    assert len(list(tmp_path.rglob("*.whl"))) == 2


def test_egg_names_the_settings_and_stays_zipped(built: Path) -> None:
    """scrapyd finds the settings by the egg's entry point, and the egg is declared safe to leave zipped."""
    with archive(built, ".egg") as egg:
        names = egg.namelist()
        entry_points = configparser.ConfigParser()
        entry_points.read_string(egg.read("EGG-INFO/entry_points.txt").decode())
    assert entry_points["scrapy"]["settings"] == "bigcrawl.settings"
    assert "EGG-INFO/zip-safe" in names


def test_wheel_brings_the_frontier_command(built: Path) -> None:
    """`scrapy frontier` exists wherever the wheel is installed, and names a module that the wheel holds."""
    with archive(built, ".whl") as wheel:
        (path,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
        entry_points = configparser.ConfigParser()
        entry_points.read_string(wheel.read(path).decode())
        module, _, _ = entry_points["scrapy.commands"]["frontier"].partition(":")
        assert f"{module.replace('.', '/')}.py" in wheel.namelist()


def test_wheel_says_licence_and_who_wrote_it(built: Path) -> None:
    """The metadata has all that an index shows, the licence's text travels along, and the types are for users too."""
    with archive(built, ".whl") as wheel:
        names = wheel.namelist()
        (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = email.message_from_bytes(wheel.read(path))
        (licence,) = (wheel.read(name).decode() for name in names if name.endswith("licenses/LICENSE"))
    assert said["License-Expression"] == "BSD-3-Clause"
    assert "bigcrawl developers" in licence
    assert said["Author"] == "bigcrawl developers"
    assert said["Keywords"]
    assert said["Description-Content-Type"] == "text/markdown"
    assert "Framework :: Scrapy" in said.get_all("Classifier", [])
    assert "bigcrawl/py.typed" in names


def test_readme_asks_for_what_the_metadata_asks_for() -> None:
    """The lowest Python and Scrapy of the README are those that pip holds to."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    (scrapy,) = (wanted for wanted in project["dependencies"] if wanted.startswith("scrapy>="))
    python, lowest = project["requires-python"].removeprefix(">="), scrapy.removeprefix("scrapy>=")
    readme = (PROJECT / "README.md").read_text("utf-8")
    assert f"Python {python} or later, Scrapy {lowest} or later" in readme
    assert f"Programming Language :: Python :: {python}" in project["classifiers"]


def test_version_is_said_once(built: Path) -> None:
    """The archives carry bigcrawl.__version__."""
    spec = importlib.util.spec_from_file_location("said", PROJECT / "bigcrawl" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    said = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(said)
    names = sorted(path.name.split("-")[1] for path in built.iterdir())
    assert names == [said.__version__] * 2


def test_lua_scripts_load_from_the_zipped_egg(built: Path) -> None:
    """Inside a zipped egg, as scrapyd runs it, every Lua script can be read as a package resource."""
    (egg,) = built.glob("*.egg")
    code = (
        "import importlib.resources as r; d = r.files('bigcrawl.redisdb') / 'lua';"
        "found = [file for folder in d.iterdir() for file in folder.iterdir()];"
        "print(d); print(sum(1 for f in found if f.name.endswith('.lua') and f.read_text()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=built,
        env={"PYTHONPATH": str(egg), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    where, count = done.stdout.split("\n")[:2]
    assert egg.name in where
    assert int(count) == len(list((PROJECT / "bigcrawl" / "redisdb" / "lua").rglob("*.lua")))
