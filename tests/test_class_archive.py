"""Archives of classes: named by what they were made from, used if they are there, and gone when nothing uses them."""

import subprocess
from pathlib import Path

import pytest

from holdfast.class_archive import MADE, USED, archive_path, making, options
from holdfast.errors import StartError


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, list[Path]]:
    """A java and a jar."""
    java, jar = tmp_path / "java", tmp_path / "one.jar"
    java.write_bytes(b"java")
    jar.write_bytes(b"jar")
    return java, [jar]


def test_another_java_or_other_jars_have_another_archive(tmp_path: Path, files):
    java, jars = files
    first = archive_path(tmp_path, "spark", java, jars)
    assert archive_path(tmp_path, "spark", java, jars) == first
    more = archive_path(tmp_path, "spark", java, [*jars, java])
    jars[0].write_bytes(b"another jar")
    changed = archive_path(tmp_path, "spark", java, jars)
    java.write_bytes(b"another java")
    assert len({first, more, changed, archive_path(tmp_path, "spark", java, jars)}) == 4


def test_an_archive_is_used_if_it_is_there_and_no_other_is_named(tmp_path: Path):
    archive = tmp_path / "a folder" / "classes-1.jsa"
    assert options(archive) == options(None) == []
    archive.parent.mkdir()
    archive.write_bytes(b"")
    assert options(archive)[0] == f"{USED}{archive}"
    assert options(archive, [f"{USED}/own"]) == []
    assert options(archive, [f"{MADE}/own"]) == []


def test_archives_that_nothing_uses_go(tmp_path: Path):
    old, new, other = tmp_path / "classes-1.jsa", tmp_path / "classes-2.jsa", tmp_path / "some.jar"
    for file in (old, new, other):
        file.write_bytes(b"")
    for file in (old, other):
        subprocess.run(["touch", "-d", "40 days ago", file], check=True)
    with making(tmp_path / "classes-3.jsa") as messages:
        made = Path(messages[0].removeprefix(MADE))
        made.write_bytes(b"archive")
    assert (tmp_path / "classes-3.jsa").read_bytes() == b"archive"
    assert sorted(tmp_path.iterdir()) == [new, tmp_path / "classes-3.jsa", other]


def test_a_jvm_that_leaves_no_archive_is_reported(tmp_path: Path):
    with pytest.raises(StartError, match="did not write a class archive"), making(tmp_path / "classes.jsa"):
        pass
    assert not list(tmp_path.iterdir())
