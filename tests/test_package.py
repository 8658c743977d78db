"""What `pip install .` installs: a package with everything that it reads at run time, and the command."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUNS = """
from holdfast.cli.main import app
from holdfast.jars import JarSet, pinned
from holdfast.sql.syntax.parse import parse
from holdfast.sql.syntax.synopsis import synopses
import holdfast

print(holdfast.__file__)
assert parse("SELECT a FROM t WHERE b > 1;") and synopses() and all(pinned(which) for which in JarSet)
app(["sql", "--help"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    (made,) = folder.glob("holdfast-*.whl")
    return made


def test_the_wheel_has_what_the_package_reads(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    read = {
        str(file.relative_to(ROOT))
        for ending in ("lark", "txt", "java")
        for file in (ROOT / "holdfast").rglob(f"*.{ending}")
    }
    assert {
        "holdfast/sql/syntax/grammar.lark",
        "holdfast/runtime/expressions/grammar.lark",
        "holdfast/jars.txt",
    } <= read
    assert "holdfast/runtime/spark/DriverTask.java" in read
    assert read <= names
    assert "holdfast/py.typed" in names
    assert not any(name.startswith(("tests/", "docs/", "bench/")) for name in names)
    (entry_points,) = [name for name in names if name.endswith("entry_points.txt")]
    assert "holdfast = holdfast.cli.main:main" in zipfile.ZipFile(wheel).read(entry_points).decode()


def test_the_installed_package_works_on_its_own(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    ran = subprocess.run(
        [sys.executable, "-c", RUNS],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(str(tmp_path)), "it is the installed one that was run"
    assert "Run statements from -e" in ran.stdout
