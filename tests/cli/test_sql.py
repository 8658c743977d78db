"""`holdfast sql` against a server."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import app
from holdfast.explain.statement import explain_plan
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.sql.syntax.statements import ExplainFormat
from tests.server.local import LocalService, eventually


@pytest.fixture
def sql(url: str):
    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, ["sql", "--server", url, *arguments], input=stdin)

    return run


def feeding(service: LocalService, *batches: tuple[tuple[object, ...], ...], after: int = 0) -> threading.Thread:
    """Puts rows, batch by batch, once a push query has started and has sent some rows."""

    def feed() -> None:
        push = service.next_push()
        assert eventually(lambda: push.meter.rows >= after)
        for rows in batches:
            service.put("TOTALS", *rows)

    thread = threading.Thread(target=feed)
    thread.start()
    return thread


def lines(result: Result) -> list[str]:
    return [line.rstrip() for line in result.stdout.splitlines()]


def test_a_pull_is_a_table(sql, service: LocalService) -> None:
    service.put("TOTALS", ("b", 12345))
    result = sql("-e", "SELECT NULLIF(id, 'b') AS id, total FROM totals;")
    assert result.exit_code == 0
    assert lines(result) == [
        "ID   | TOTAL",
        "-----+------",
        "a    |     3",
        "null | 12345",
        "(2 rows)",
    ]


def test_a_push_prints_rows_until_its_limit(sql, service: LocalService) -> None:
    """From the earliest, so it begins with the row that is there."""
    service.put("TOTALS", ("a", 1))
    fed = feeding(service, (("a",),), (("b", 2),), after=1)
    result = sql("-e", "SET 'auto.offset.reset'='earliest'; SELECT id, total FROM totals EMIT CHANGES LIMIT 3;")
    fed.join()
    assert result.exit_code == 0
    assert lines(result) == [
        "ID       |    TOTAL",
        "---------+---------",
        "a        |        1",
        "a        | <TOMBSTONE>",
        "b        |           2",
        "(3 rows)",
    ]


@pytest.mark.parametrize("format_", ["TABLE", "JSON", "CSV"])
def test_a_push_over_a_table_that_stops_says_so(sql, service: LocalService, format_: str) -> None:
    def stop() -> None:
        push = service.next_push()
        assert eventually(lambda: push.meter.rows == 1)
        service.change(f"PAUSE {service.query};")
        assert eventually(lambda: push.notice is not None and not push.notice.current)
        service.change(f"RESUME {service.query};")
        service.put("TOTALS", ("b", 2))

    stopping = threading.Thread(target=stop)
    stopping.start()
    result = sql("-o", format_, "-e", "SELECT id, total FROM totals EMIT ALL LIMIT 2;")
    stopping.join()
    assert result.exit_code == 0
    stopped, *_, again = result.stderr.replace("\n", " ").split("NOTICE: ")[1:]
    assert stopped.startswith('table "TOTALS" has been frozen since ')
    assert stopped.strip().endswith(f": its query {service.query} is paused")
    assert again.strip() == 'table "TOTALS" is current again'
    assert "NOTICE" not in result.stdout


def test_lists_and_descriptions(sql) -> None:
    shown = sql("-e", "SHOW STREAMS; SHOW QUERIES; DESCRIBE orders; EXPLAIN SELECT id FROM totals;")
    assert shown.exit_code == 0
    assert "ORDERS         | orders " in shown.stdout
    assert "RUNNING" in shown.stdout
    assert "ID     | STRING  | KEY" in shown.stdout
    assert "->  Table Source on topic TOTALS" in shown.stdout
    assert not any(line.endswith(" ") for line in shown.stdout.splitlines())
    assert "\x1b" not in shown.stdout


@pytest.mark.parametrize("format_", ["JSON", "DOT", "SVG"])
def test_a_plan_in_a_format_is_a_file_when_redirected(sql, service: LocalService, format_: str) -> None:
    (query,) = service.catalog.queries.values()
    for output in ("table", "csv"):
        shown = sql("--output", output, "-e", f"EXPLAIN {query.id} AS {format_};")
        assert shown.stdout == explain_plan(query.plan, ExplainFormat(format_))


def test_a_script_from_standard_input_or_a_file(sql, service: LocalService, tmp_path: Path) -> None:
    script = "INSERT INTO orders VALUES ('a', 1);\nINSERT INTO orders VALUES ('b', 2)"
    assert sql(stdin=script).stdout == "1 row inserted.\n1 row inserted.\n"
    file = tmp_path / "script.sql"
    file.write_text(script)
    assert sql("-f", str(file)).exit_code == 0
    assert len(service.inserted) == 4


def test_an_error_shows_its_place_and_ends_the_script(sql, service: LocalService) -> None:
    result = sql("-e", "INSERT INTO orders VALUES ('a', 1);\n  SELECT idd,\n total FROM totals;\nDROP TABLE totals;")
    assert result.exit_code == 1
    assert result.stdout == "1 row inserted.\n"
    assert result.stderr.splitlines() == [
        'ERROR: column "IDD" does not exist in "TOTALS"',
        "LINE 2:   SELECT idd,",
        "                 ^",
        'HINT: Did you mean "ID"?',
        "CONTEXT: statement 2, starting at line 2.",
    ]
    assert service.catalog.find("TOTALS") is not None


def test_errors_without_a_server_or_a_file(tmp_path: Path) -> None:
    nobody = CliRunner().invoke(app, ["sql", "--server", "http://127.0.0.1:1", "-e", "SHOW STREAMS;"])
    assert nobody.exit_code == 1
    assert nobody.stderr.startswith("ERROR: cannot reach a server at http://127.0.0.1:1\nDETAIL: ")
    assert "HINT: Start one with: holdfast start, or choose another with --server." in nobody.stderr
    lacking = CliRunner().invoke(app, ["sql", "-f", str(tmp_path / "none.sql")])
    assert lacking.exit_code == 1
    assert "cannot be read" in lacking.stderr
    wrong = CliRunner().invoke(app, ["sql", "--server", "nowhere", "-e", "SHOW STREAMS;"])
    assert wrong.exit_code == 1
    assert '"nowhere" is not the address of a server' in wrong.stderr


def test_the_statement_of_a_file_that_fails_is_named(sql, tmp_path: Path) -> None:
    file = tmp_path / "script.sql"
    file.write_text("-- first\nSHOW STREAMS;\n\nSHOW\n  NONSENSE;\n")
    result = sql("-f", str(file))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:3] == ["LINE 5:   NONSENSE;", "          ^"]
    assert result.stderr.splitlines()[-1] == f"CONTEXT: statement 2, starting at line 4 of {file}."


def test_json_is_one_object_per_line(sql, service: LocalService) -> None:
    service.put("TOTALS", ("a",), ('a"\n', 3), ("b", None))
    result = sql("-o", "json", "-e", "SELECT NULLIF(id, 'b') AS id, total FROM totals; SHOW STREAMS;")
    first, second, streams = map(json.loads, result.stdout.splitlines())
    assert (first, second) == ({"ID": 'a"\n', "TOTAL": 3}, {"ID": None, "TOTAL": None})
    assert streams["streams"][1]["name"] == "ORDERS"


def test_csv_distinguishes_a_null_from_an_empty_text(sql, service: LocalService) -> None:
    service.put("TOTALS", ("a",), ('a,"b"', 3), ("b", None), ("c", 1))
    texts = "CASE WHEN id = 'c' THEN '' WHEN id <> 'b' THEN id END"
    result = sql(
        "--output", "CSV", "-e", f"SELECT {texts} AS id, total FROM totals; INSERT INTO orders VALUES ('a', 1);"
    )
    assert result.stdout == 'ID,TOTAL\n"a,""b""",3\n,\n"",1\n'
    assert result.stderr == "1 row inserted.\n"


def test_tombstones_in_json_and_csv(sql, service: LocalService) -> None:
    push = "SELECT id, total FROM totals EMIT CHANGES LIMIT 2;"
    for form, lines_ in (
        ("json", ['{"ID":"a","TOTAL":1}', '{"@tombstone":{"ID":"a","TOTAL":null}}']),
        ("csv", ["ID,TOTAL,tombstone", "a,1,", "a,,true"]),
    ):
        fed = feeding(service, (("a", 1),), (("a",),))
        assert sql("-o", form, "-e", push).stdout.splitlines() == lines_
        fed.join()


def test_output_spool_and_scripts_in_a_script(sql, tmp_path: Path) -> None:
    inner, copy = tmp_path / "inner.sql", tmp_path / "copy.txt"
    inner.write_text("OUTPUT CSV; SHOW TABLES; SPOOL OFF;")
    result = sql("-e", f"SPOOL '{copy}'; RUN SCRIPT '{inner}'; SHOW STREAMS; EXIT; SHOW NONSENSE;")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1] == "TOTALS,TOTALS,KAFKA,JSON"
    assert copy.read_text().endswith("TOTALS,TOTALS,KAFKA,JSON\n")
    assert "ORDERS,orders" in result.stdout
    inner.write_text(f"RUN SCRIPT '{inner}';")
    assert "scripts are nested too deeply" in sql("-f", str(inner)).stderr
    assert "Write RUN SCRIPT 'file'." in sql("-e", "RUN nothing;").stderr


def test_a_reader_that_goes_away_ends_the_command(service: LocalService, url: str) -> None:
    service.put("TOTALS", *((f"{i:05}" + "a" * 500, i) for i in range(20_000)))
    command = [sys.executable, "-c", "from holdfast.cli.main import main; main()", "sql", "--server", url]
    with subprocess.Popen(
        [*command, "-e", "SELECT id, total FROM totals;"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.readline()
        ran.stdout.close()
        assert ran.stderr.read() == b""
    assert ran.returncode == 141


def test_print_shows_lines(sql, service: LocalService) -> None:
    service.broker.create(TopicSpec(name=TopicName("Orders"), partitions=4))
    service.write("Orders", ("k", {"a": [1]}), partition=3, timestamp=1)
    result = sql("-e", "PRINT Orders FROM BEGINNING LIMIT 1; SHOW TYPES;")
    assert result.exit_code == 0
    assert lines(result) == [
        "Key format: KAFKA_STRING",
        "Value format: JSON or KAFKA_STRING",
        'rowtime: 1970/01/01 00:00:00.001 Z, key: k, value: {"a": [1]}, partition: 3',
        "There are no types.",
    ]


def test_a_print_of_no_topic_is_an_error_with_its_place(sql) -> None:
    result = sql("-e", "PRINT nowhere;")
    assert result.exit_code == 1
    assert 'topic "nowhere" does not exist' in result.stderr


def test_topics_with_their_readers(sql, service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "topic_readers", lambda: {TopicName("orders"): (3, 2)})
    assert lines(sql("-e", "SHOW TOPICS EXTENDED; ASSERT TOPIC orders;")) == [
        "Topic  | Partitions | Replicas | Consumers | Groups",
        "-------+------------+----------+-----------+-------",
        "TOTALS | 1          | 1        | 0         | 0",
        "orders | 1          | 1        | 3         | 2",
        "Topic orders exists.",
    ]
