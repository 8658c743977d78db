"""The archive of Spark's classes fits the JVM that Spark is started with."""

import subprocess
from pathlib import Path

import psutil

from holdfast.class_archive import USED
from holdfast.runtime.spark.session import Sessions, java_options


def test_options_are_there_once_also_with_spaces_in_paths(tmp_path: Path):
    archive, log = tmp_path / "a b.jsa", tmp_path / "log dir" / "log4j2.properties"
    archive.write_bytes(b"")
    first = java_options("-Xss4m", log, archive)
    assert f"'{USED}{archive}'" in first
    assert f"'-Dlog4j2.configurationFile={log}'" in first
    assert java_options(first, log, archive) == first


def test_the_archive_fits_the_jvm_that_spark_is_started_with(sessions: Sessions):
    """With `-Xshare:on` a JVM that cannot use its archive does not start."""
    command = psutil.Process(sessions.large.sparkContext._gateway.proc.pid).cmdline()
    assert any(option.startswith(USED) for option in command), "there is no archive: `make archive` makes it"
    java, *given = command[: command.index("org.apache.spark.deploy.SparkSubmit")]
    checked = [java, "-Xshare:on", *given, "-version"]
    assert subprocess.run(checked, capture_output=True, check=False).returncode == 0
    paths = checked[checked.index("-cp") + 1].split(":")
    checked[checked.index("-cp") + 1] = ":".join(reversed(paths))
    assert subprocess.run(checked, capture_output=True, check=False).returncode != 0
