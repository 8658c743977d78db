"""`holdfast start` up to where the machine's own parts begin, and the small commands."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.cli.main import app
from holdfast.cli.start import pairs
from holdfast.errors import ConfigError


def test_version() -> None:
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("holdfast ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kafka", "nowhere"], 'setting "kafka" must be host:port'),
        (["-s", "no_such=1"], 'setting "no_such" does not exist'),
        (["-s", "spark_mster=local"], 'HINT: Did you mean "spark_master"?'),
        (["-s", "spark_driver_memory=4g"], "HINT: To set a Spark property, write -s spark.driver.memory=…"),
        (["-s", "nonsense"], '"nonsense" is not a setting'),
        (["--config", "/nowhere.toml"], 'the file "/nowhere.toml" does not exist'),
        (["--http-port", "99999"], 'setting "http_port" must be'),
    ],
)
def test_wrong_settings_are_reported_at_once(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(app, ["start", *arguments])
    assert result.exit_code == 1
    assert result.stderr.startswith("ERROR: ")
    assert says in result.stderr
    assert result.stderr.count("Did you mean") <= 1
    assert "Traceback" not in result.output


def test_a_folder_of_jars_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "jars").touch()
    arguments = ["-s", f"jar_dir={tmp_path / 'jars'}", "--data-dir", str(tmp_path / "data"), "--http-port", "0"]
    result = CliRunner().invoke(app, ["start", *arguments])
    assert result.exit_code == 1
    assert f'ERROR: the jar folder "{tmp_path / "jars"}" cannot be used' in result.stderr
    assert "HINT: Check that it is writable" in result.stderr


def test_a_port_in_use_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["start", "--http-port", str(port), "--data-dir", str(tmp_path / "data")])
    assert result.exit_code == 1
    assert f"ERROR: cannot listen on 127.0.0.1:{port}" in result.stderr
    assert "HINT: Choose another port" in result.stderr
    assert not (tmp_path / "data").exists()


def test_settings_by_name() -> None:
    given = [
        "store-memory=2GB",
        "kafka.security.protocol=SSL",
        "kafka.ssl.ca.location=/x=y",
        "spark.executor.memory=1g",
    ]
    assert pairs(given) == {
        "store_memory": "2GB",
        "kafka_properties": {"security.protocol": "SSL", "ssl.ca.location": "/x=y"},
        "spark_properties": {"executor.memory": "1g"},
    }
    with pytest.raises(ConfigError):
        pairs(["=1"])
