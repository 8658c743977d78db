"""What passes, what fails and what is unsupported; each case through the whole road."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.runtime.plan import json_text
from holdfast.testing.case import Result, Verdict
from holdfast.testing.reader import read_file, read_plans
from holdfast.testing.runner import run

ORDERS = (
    "CREATE STREAM orders (id STRING KEY, n INT, d DECIMAL(6, 2)) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');"
)
COPY = "CREATE STREAM copy AS SELECT * FROM orders;"
COUNTS = "CREATE TABLE counts AS SELECT n, COUNT(*) AS c FROM orders GROUP BY n EMIT CHANGES;"
AN_ORDER = {"topic": "orders", "key": "a", "value": {"n": 1, "d": Decimal("2.50")}, "timestamp": 7}
A_COPY = {"topic": "COPY", "key": "a", "value": {"N": 1, "D": Decimal("2.50")}, "timestamp": 7}


class Numbers(json.JSONEncoder):
    """JSON that keeps the scale of numbers."""

    def iterencode(self, o: Any, _one_shot: bool = False):
        yield json_text.write(o).decode()


def verdicts(folder: Path, engine, *tests: dict[str, Any]) -> list[Verdict]:
    file = folder / "case.json"
    named = [{"name": f"case {i}", **test} for i, test in enumerate(tests)]
    file.write_text(json.dumps({"tests": named}, cls=Numbers))
    return [run(case, engine) for case in read_file(file)]


def verdict(folder: Path, engine, **test: Any) -> Verdict:
    (only,) = verdicts(folder, engine, test)
    return only


def test_records_as_expected_pass(engine, tmp_path):
    found = verdict(tmp_path, engine, statements=[ORDERS, COPY], inputs=[AN_ORDER], outputs=[A_COPY])
    assert found == Verdict(Result.PASSED)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([], None),
        ([{**A_COPY, "key": "b"}], 'topic COPY, record 1: key: expected "b", got "a"'),
        ([{**A_COPY, "value": None}], 'topic COPY, record 1: value: expected null, got {"N":1,"D":2.50}'),
        ([{**A_COPY, "value": {"N": 1}}], 'topic COPY, record 1: value: expected {"N":1}, got {"N":1,"D":2.50}'),
        (
            [{**A_COPY, "value": {"N": 1, "D": Decimal("2.5")}}],
            'topic COPY, record 1: value: expected {"N":1,"D":2.5}, got {"N":1,"D":2.50}',
        ),
        ([{**A_COPY, "timestamp": 8}], "topic COPY, record 1: timestamp: expected 8, got 7"),
        ([{k: v for k, v in A_COPY.items() if k != "timestamp"}], None),
        ([A_COPY, A_COPY], "topic COPY, expected 2 records, got 1"),
        (
            [{**A_COPY, "headers": [{"KEY": "h", "VALUE": "YQ=="}]}],
            "topic COPY, record 1: headers: expected h=b'a', got none",
        ),
        (
            [{**A_COPY, "window": {"start": 0, "end": 1, "type": "time"}}],
            "topic COPY, record 1: window: expected time 0..1, got none",
        ),
        ([{**A_COPY, "topic": "NOWHERE"}], "no stream or table has topic NOWHERE"),
    ],
)
def test_the_first_difference_is_reported(engine, tmp_path, outputs, message):
    found = verdict(tmp_path, engine, statements=[ORDERS, COPY], inputs=[AN_ORDER], outputs=outputs)
    assert found == Verdict(Result.PASSED if message is None else Result.FAILED, message)


def test_the_order_of_a_topic_counts_and_that_of_topics_does_not(engine, tmp_path):
    inputs = [AN_ORDER, {**AN_ORDER, "key": "b"}]
    counts = [{"topic": "COUNTS", "key": 1, "value": {"C": c}} for c in (1, 2)]
    copies = [A_COPY, {**A_COPY, "key": "b"}]
    statements = [ORDERS, COPY, COUNTS]
    right, turned = verdicts(
        tmp_path,
        engine,
        {"statements": statements, "inputs": inputs, "outputs": [*counts, *copies]},
        {"statements": statements, "inputs": inputs, "outputs": [*copies[::-1], *counts]},
    )
    assert right.result is Result.PASSED
    assert turned == Verdict(Result.FAILED, 'topic COPY, record 1: key: expected "b", got "a"')


def test_a_topic_that_a_query_writes_is_read_by_a_stream_over_it(engine, tmp_path):
    again = "CREATE STREAM again (id STRING KEY, n INT) WITH (KAFKA_TOPIC='COPY', VALUE_FORMAT='JSON');"
    last = "CREATE STREAM last AS SELECT id, n + 1 AS m FROM again;"
    found = verdict(
        tmp_path,
        engine,
        statements=[ORDERS, COPY, again, last],
        inputs=[AN_ORDER],
        outputs=[{"topic": "LAST", "key": "a", "value": {"M": 2}}],
    )
    assert found == Verdict(Result.PASSED)


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("CREATE STREAM x AS SELECT nn FROM orders;", {"type": "UnknownColumn"}, None),
        ("CREATE STREAM x AS SELECT nn FROM orders;", {"sqlstate": "42703", "message": '"NN" does not exist'}, None),
        ("CREATE STREAM x AS SELECT nn FROM orders;", {"message": "no such thing"}, "no such thing"),
        ("CREATE STREAM x AS SELECT nn FROM orders;", {"type": "TypeMismatch"}, "expected TypeMismatch"),
        (COPY, {"message": "anything"}, "all statements ran"),
        (
            "CREATE STREAM x AS SELECT nn FROM orders;",
            {"type": "a.JavaException", "message": "Unknown format: NN"},
            "NN",
        ),
        ("CREATE STREAM x AS SELEC nn;", {"type": "a.ParseFailedException"}, None),
        ("CREATE STREAM x AS SELECT nn FROM orders;", {"type": "a.ParseFailedException"}, "expected a syntax error"),
    ],
)
def test_expected_errors(engine, tmp_path, statement, error, message):
    found = verdict(tmp_path, engine, statements=[ORDERS, statement], expectedException=error)
    assert found.result is (Result.PASSED if message is None else Result.FAILED)
    assert (message or "") in (found.reason or "")


def test_an_error_before_the_last_statement_is_a_failure(engine, tmp_path):
    bad = "CREATE STREAM x AS SELECT nn FROM orders;"
    found = verdict(tmp_path, engine, statements=[ORDERS, bad, bad], expectedException={"type": "UnknownColumn"})
    assert found.result is Result.FAILED


def test_what_is_missing_is_unsupported_also_where_an_error_is_expected(engine, tmp_path):
    avro = ORDERS.replace("'JSON'", "'AVRO'")
    for more in ({}, {"expectedException": {"type": "a.JavaException", "message": "AVRO"}}):
        found = verdict(tmp_path, engine, statements=[avro], **more)
        assert found.result is Result.UNSUPPORTED
        assert found.missing == "format AVRO of values"
        assert found.reason is not None
        assert found.reason.startswith(found.missing)


def test_what_must_hold_afterwards(engine, tmp_path):
    source = {"name": "COUNTS", "type": "table", "schema": "N INT KEY, C BIGINT", "keyFormat": {"format": "KAFKA"}}
    for change, message in [
        ({}, None),
        ({"name": "COUNT"}, "there is no table COUNT"),
        ({"type": "stream"}, "kind of COUNTS: expected stream, got table"),
        ({"schema": "N INT KEY, C INT"}, "schema of COUNTS"),
        ({"keyFormat": {"format": "JSON"}}, "key format of COUNTS: expected JSON, got KAFKA"),
        ({"keyFormat": {"format": "KAFKA", "windowType": "SESSION"}}, "window type of COUNTS"),
    ]:
        found = verdict(tmp_path, engine, statements=[ORDERS, COUNTS], post={"sources": [{**source, **change}]})
        assert (found.result is Result.PASSED) == (message is None), found
        assert (message or "") in (found.reason or "")


def test_a_grouping_moves_rows_and_a_copy_does_not(engine, tmp_path):
    forbidden = {"topics": {"blacklist": ".*-repartition"}}
    copied, counted = verdicts(
        tmp_path,
        engine,
        {"statements": [ORDERS, COPY], "post": forbidden},
        {"statements": [ORDERS, COUNTS], "post": forbidden},
    )
    assert copied.result is Result.PASSED
    assert counted.result is Result.FAILED


def test_a_recorded_plan_runs_from_its_bytes(engine, tmp_path):
    formats = {"keyFormat": {"format": "KAFKA", "properties": {}}, "valueFormat": {"format": "JSON", "properties": {}}}
    schema = "`ID` STRING KEY, `N` INTEGER"
    ddl = {"@type": "createStreamV1", "timestampColumn": None, "formats": formats, "windowInfo": None}
    source = {"@type": "streamSourceV1", "properties": {"queryContext": "KsqlTopic/Source"}, "topicName": "orders",
              "formats": formats, "timestampColumn": None, "sourceSchema": schema}  # fmt: skip
    select = {"@type": "streamSelectV1", "properties": {"queryContext": "Project"}, "source": source,
              "keyColumnNames": ["ID"], "selectExpressions": ["(N + 1) AS N"]}  # fmt: skip
    sink = {"@type": "streamSinkV1", "properties": {"queryContext": "OUT"}, "source": select, "formats": formats,
            "topicName": "OUT"}  # fmt: skip
    plans = [
        {"@type": "ksqlPlanV1", "statementText": "not SQL at all", "queryPlan": None,
         "ddlCommand": {**ddl, "sourceName": "ORDERS", "schema": schema, "topicName": "orders"}},
        {"@type": "ksqlPlanV1", "statementText": "nor this",
         "ddlCommand": {**ddl, "sourceName": "OUT", "schema": schema, "topicName": "OUT"},
         "queryPlan": {"sources": ["ORDERS"], "sink": "OUT", "physicalPlan": sink, "queryId": "CSAS_OUT_0"}},
    ]  # fmt: skip
    out = {"topic": "OUT", "key": "a", "value": {"N": 2}}
    line = {"name": "plus one", "version": "8.0.0", "plan": plans, "inputs": [{**AN_ORDER, "value": {"n": 1}}]}
    unknown = {**line, "plan": [*plans[:1], {**plans[1], "queryPlan": {**plans[1]["queryPlan"], "more": 1}}]}
    file = tmp_path / "recorded.jsonl"
    file.write_text(
        "".join(json.dumps({**o, "outputs": [out]}) + "\n" for o in (line, {**line, "inputs": []}, unknown))
    )
    cases = read_plans(file)
    assert [case.name for case in cases] == ["plus one - 8.0.0", "plus one - 8.0.0 #2", "plus one - 8.0.0 #3"]
    found = [run(case, engine) for case in cases]
    assert [v.result for v in found] == [Result.PASSED, Result.FAILED, Result.FAILED]
    assert "more" in str(found[2].reason)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"expect": "q", "rows": [["a", 1]]}, None),
        ({"expect": "q", "rows": []}, 'q: expected 0 rows, got 1; the next is ["a",1]'),
        ({"expect": "q", "rows": [["a", 2]]}, 'q: row 1: expected ["a",2], got ["a",1]'),
        ({"expect": "q", "rows": [{"tombstone": ["a", 1]}]}, 'q: row 1: expected tombstone ["a",1], got ["a",1]'),
        ({"expect": "p", "rows": []}, 'no earlier SELECT … EMIT is named "p"'),
        ({"statement": "SELECT * FROM counts;", "rows": [[1, 1]]}, None),
        ({"statement": "SELECT * FROM counts;", "rows": [[1, 2]]}, "row 1: expected [1,2], got [1,1]"),
        ({"statement": "SELECT x FROM counts;", "error": {"sqlstate": "42703"}}, None),
        ({"statement": "SELECT c FROM counts;", "error": {"sqlstate": "42703"}}, "expected an error, but it ran"),
        ({"wait": 1}, "a step must have exactly one of"),
        ({"input": AN_ORDER, "rows": []}, 'a step with "input" cannot have "rows"'),
    ],
)
def test_steps(engine, tmp_path, step, message):
    steps = [
        {"statement": "SELECT id, n FROM orders EMIT CHANGES;", "as": "q"},
        {"input": AN_ORDER},
        step,
    ]
    found = verdict(tmp_path, engine, statements=[ORDERS, COUNTS], steps=steps)
    assert (found.result is Result.PASSED) == (message is None), found
    assert (message or "") in (found.reason or "")


def test_a_query_made_later_has_what_was_there_before(engine, tmp_path):
    steps = [
        {"input": AN_ORDER},
        {"statement": COUNTS},
        {"statement": "CREATE TABLE more AS SELECT n, c FROM counts WHERE c > 0;"},
        {"statement": "SELECT * FROM more;", "rows": [[1, 1]]},
        {"input": AN_ORDER},
        {"statement": "SELECT * FROM more;", "rows": [[1, 2]]},
    ]
    assert verdict(tmp_path, engine, statements=[ORDERS], steps=steps) == Verdict(Result.PASSED)
