import os
import stat
import time
from pathlib import Path
from zipfile import ZipFile

import pytest

from holdfast.errors import StartError
from holdfast.function_jar import function_jar
from holdfast.jars import find_java, ivy_jar

SPARK_JARS = ivy_jar().parent


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return function_jar(tmp_path_factory.mktemp("cache"), java=find_java(), spark_jars=SPARK_JARS)


def test_the_jar_has_the_catalog_and_is_compiled_once(compiled):
    assert "holdfast/functions/Functions.class" in ZipFile(compiled).namelist()
    again = function_jar(compiled.parent, java=Path("/no/java"), spark_jars=SPARK_JARS)
    assert again == compiled
    assert {path.name for path in compiled.parent.iterdir()} == {compiled.name, f"{compiled.stem}.sha256"}


def test_a_damaged_jar_is_compiled_again_to_the_same_bytes(compiled):
    before = compiled.read_bytes()
    compiled.write_bytes(before[:-1])
    assert function_jar(compiled.parent, java=find_java(), spark_jars=SPARK_JARS) == compiled
    assert compiled.read_bytes() == before


def test_a_jar_that_is_not_used_for_a_month_is_removed(compiled):
    unused, used = (compiled.with_name(f"holdfast-functions-{name}.jar") for name in ("old", "new"))
    for jar in (unused, used):
        jar.touch()
        jar.with_suffix(".sha256").touch()
    month_ago = time.time() - 31 * 86_400
    os.utime(unused.with_suffix(".sha256"), (month_ago, month_ago))
    compiled.unlink()
    function_jar(compiled.parent, java=find_java(), spark_jars=SPARK_JARS)
    assert {path.name for path in compiled.parent.glob("*.jar")} == {compiled.name, used.name}
    assert not unused.with_suffix(".sha256").exists()
    used.unlink()
    used.with_suffix(".sha256").unlink()


def test_a_java_that_cannot_compile_is_reported_with_a_hint(tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'no class has this name' >&2\nexit 1\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(StartError, match="cannot be compiled") as raised:
        function_jar(tmp_path / "cache", java=java, spark_jars=SPARK_JARS)
    assert raised.value.detail == "no class has this name"
    assert str(java) in (raised.value.hint or "")
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
