import os
import re
import stat
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from holdfast import jars
from holdfast.config import load
from holdfast.crash import CRASH_POINTS
from holdfast.errors import StartError
from holdfast.jars import JarSet, fetch_jars, find_java, java_release, pinned


@pytest.fixture(scope="session")
def fetched(tmp_path_factory):
    """A cache with the small set in it, linked from the user's so that the registry is asked at most once."""
    *kept, compiled = fetch_jars(JarSet.SPARK, load(environment=dict(os.environ)).jar_dir, java=find_java())
    cache = tmp_path_factory.mktemp("jars")
    home = cache / jars.digest_of(pinned(JarSet.SPARK))
    home.mkdir()
    for jar in kept:
        (home / jar.name).write_bytes(jar.read_bytes())
    for file in (compiled, compiled.with_suffix(".sha256")):
        (cache / file.name).write_bytes(file.read_bytes())
    return cache


def refuse(*_args, **_more):
    raise AssertionError("the registry was asked")


def test_the_pinned_list_names_jars_and_no_host():
    text = files("holdfast").joinpath("jars.txt").read_text()
    assert "://" not in text
    for which in JarSet:
        assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in pinned(which))
        names = [jar.file_name for jar in pinned(which)]
        assert len(names) == len(set(names))
    assert {jar.file_name for jar in pinned(JarSet.SPARK)} >= {"spark-sql-kafka-0-10_2.13-4.2.0.jar"}
    assert {jar.file_name for jar in pinned(JarSet.BROKER)} >= {"kafka_2.13-4.3.1.jar", "log4j-core-2.25.4.jar"}


def test_cached_jars_ask_nobody(fetched, monkeypatch):
    monkeypatch.setattr(jars, "resolve", refuse)
    *paths, compiled = fetch_jars(JarSet.SPARK, fetched, java=Path("/no/java"))
    assert [path.name for path in paths] == [jar.file_name for jar in pinned(JarSet.SPARK)]
    assert all(path.is_file() for path in (*paths, compiled))


def test_a_damaged_and_a_missing_jar_are_fetched_again_and_no_other(fetched):
    home = fetched / jars.digest_of(pinned(JarSet.SPARK))
    damaged, missing = home / "commons-pool2-2.13.1.jar", home / "spark-token-provider-kafka-0-10_2.13-4.0.0.jar"
    others = {path: path.stat().st_ino for path in home.iterdir() if path not in (damaged, missing)}
    damaged.write_bytes(b"not a jar")
    missing.unlink()
    calls = []
    *paths, compiled = fetch_jars(
        JarSet.SPARK, fetched, java=find_java(), progress=lambda done, total, name: calls.append((done, total, name))
    )
    assert all(jars.intact(path, jar) for path, jar in zip(paths, pinned(JarSet.SPARK), strict=True))
    assert {path: path.stat().st_ino for path in others} == others
    assert calls[0] == (0, 2, "")
    assert calls[-1] == (2, 2, "")
    assert {name for _, _, name in calls} >= {"commons-pool2"}
    assert [done for done, _, _ in calls] == sorted(done for done, _, _ in calls)
    assert {path.name for path in fetched.iterdir()} == {home.name, compiled.name, f"{compiled.stem}.sha256"}


def test_a_registry_that_does_not_answer_leaves_no_trace(tmp_path):
    nowhere = tmp_path / "ivysettings.xml"
    nowhere.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{tmp_path}/none/[artifact].[ext]"/></filesystem></resolvers></ivysettings>'
    )
    cache = tmp_path / "cache"
    with pytest.raises(StartError, match="could not fetch 4 jars") as raised:
        fetch_jars(JarSet.SPARK, cache, java=find_java(), ivy_settings=nowhere)
    assert "spark-sql-kafka" in (raised.value.detail or "")
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_other_bytes_than_pinned_are_refused(tmp_path):
    jar = pinned(JarSet.SPARK)[0]
    (tmp_path / jar.file_name).write_bytes(b"other")
    with pytest.raises(StartError, match="not the one this release was tested with"):
        jars.checked(tmp_path / jar.file_name, jar)


def test_a_folder_of_jars_that_cannot_be_used_is_reported_with_a_hint(tmp_path):
    (tmp_path / "file").touch()
    for unusable in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        with pytest.raises(StartError, match=f'"{unusable}" cannot be used') as raised:
            fetch_jars(JarSet.SPARK, unusable, java=find_java())
        assert "set jar_dir" in (raised.value.hint or "")


def test_a_disk_that_is_full_while_jars_are_fetched_is_reported(tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho '\t[FAILED] java.io.IOException: No space left on device'\nexit 1\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(StartError, match="cannot be used") as raised:
        fetch_jars(JarSet.SPARK, tmp_path / "jars", java=java)
    assert "No space left on device" in (raised.value.detail or "")
    assert "disk has space" in (raised.value.hint or "")


def fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}" 2020-01-01' >&2\n""")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return java


@pytest.mark.parametrize(("version", "release"), [("1.8.0_392", 8), ("11.0.2", 11), ("17", 17), ("21.0.1", 21)])
def test_java_releases_are_distinguished(version, release, tmp_path):
    java = fake_java(tmp_path, version)
    assert java_release(java) == release
    (tmp_path / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    assert java_release(java) == release


def test_a_java_that_is_too_old_or_missing_is_reported_with_a_hint(tmp_path):
    fake_java(tmp_path, "11.0.2")
    with pytest.raises(StartError, match="Java 17 or later is required, but this is Java 11") as raised:
        find_java(tmp_path)
    assert "JAVA_HOME" in (raised.value.hint or "")
    with pytest.raises(StartError, match="was not found"):
        find_java(tmp_path / "nowhere")


def test_crash_points():
    assert len(CRASH_POINTS) == 16
    reach = (
        "from holdfast.config import armed_crash_point\nfrom holdfast.crash import arm, crash_point\n"
        "arm(armed_crash_point())\nfor n in range(3): print(n, flush=True); crash_point('before_produce')"
    )

    def run(armed: str | None) -> tuple[int, str, str]:
        environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_CRASH"}
        environment |= {"HOLDFAST_CRASH": armed} if armed else {}
        done = subprocess.run([sys.executable, "-c", reach], env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert run(None)[:2] == (0, "0\n1\n2\n")
    assert run("after_produce")[:2] == (0, "0\n1\n2\n")
    assert run("before_produce")[:2] == (-9, "0\n")
    assert run("before_produce:3")[:2] == (-9, "0\n1\n2\n")
    assert "Did you mean" in run("befor_produce")[2]
    assert "n of at least 1" in run("before_produce:0")[2]
