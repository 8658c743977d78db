"""`holdfast test` as a command: its report, its last line and its exit code."""

import json
import os
import subprocess
import sys

STREAM = "CREATE STREAM s (k STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
COPY = "CREATE STREAM copy AS SELECT * FROM s WHERE n > 1;"
INPUTS = [{"topic": "s", "key": "a", "value": {"n": 1}}, {"topic": "s", "key": "b", "value": {"n": 2}}]
PASSES = {"name": "passes", "statements": [STREAM, COPY], "inputs": INPUTS,
          "outputs": [{"topic": "COPY", "key": "b", "value": {"N": 2}}]}  # fmt: skip
FAILS = {**PASSES, "name": "fails", "outputs": []} | {"outputs": [{"topic": "COPY", "key": "a", "value": {"N": 1}}]}
LACKS = {**PASSES, "name": "lacks", "statements": [STREAM.replace("'JSON'", "'AVRO'"), COPY]}


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-c", "from holdfast.cli.main import main; main()", "test", *arguments]
    return subprocess.run(whole, capture_output=True, text=True, timeout=300, env=dict(os.environ))


def test_the_report_the_last_line_and_the_exit_code(tmp_path):
    (tmp_path / "cases.json").write_text(json.dumps({"tests": [PASSES, FAILS, LACKS]}))
    report = tmp_path / "report.json"
    done = command(str(tmp_path / "cases.json"), "--json", str(report))
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed, 1 unsupported", done.stderr
    assert "FAILED cases - fails: topic COPY, record 1" in done.stdout
    assert done.returncode == 1
    results = json.loads(report.read_text())
    assert [entry.keys() for entry in results] == [{"file", "name", "result", "reason", "seconds"}] * 3
    assert [(e["file"], e["name"], e["result"]) for e in results] == [
        ("cases", "passes", "passed"),
        ("cases", "fails", "failed"),
        ("cases", "lacks", "unsupported"),
    ]
    assert results[2]["reason"].startswith("format AVRO of values")
    assert done.returncode == 1


def test_no_failure_is_exit_code_0_and_no_match_is_an_error(tmp_path):
    (tmp_path / "cases.json").write_text(json.dumps({"tests": [PASSES, FAILS, LACKS]}))
    assert command(str(tmp_path), "--only", "cases - passes").returncode == 0
    done = command(str(tmp_path), "--only", "nothing")
    assert done.returncode == 1
    assert 'no test matches "nothing"' in done.stderr
