"""/query-stream and /query: the forms of rows, LIMIT, errors on the way, and clients that go."""

import datetime
import json
import time
from collections.abc import Iterator
from decimal import Decimal

import httpx
import pyarrow as pa
import pytest

from holdfast.errors import ReadError
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.store.port import Time
from holdfast.serving.results import PullResult, ResultColumn
from holdfast.sql.read.select import BoundSelect
from holdfast.types import Array, Map, Scalar, Struct, StructField
from holdfast.types import Decimal as DecimalType
from tests.server.local import LocalService, raising

PULL = "SELECT id, total FROM totals;"
PUSH = "SELECT id, total FROM totals EMIT CHANGES;"
HEADER = {"columnNames": ["ID", "TOTAL"], "columnTypes": ["STRING", "INTEGER"]}


def lines(response: httpx.Response) -> Iterator[object]:
    return (json.loads(line) for line in response.iter_lines() if line)


def test_a_pull_in_each_form(http: httpx.Client) -> None:
    delimited = http.post("/query-stream", json={"sql": PULL})
    assert delimited.headers["content-type"] == "application/vnd.ksqlapi.delimited.v1"
    assert list(lines(delimited)) == [{"queryId": None, **HEADER}, ["a", 3]]
    array = http.post("/query-stream", json={"sql": PULL}, headers={"accept": "application/json"})
    assert array.json() == [{"queryId": None, **HEADER}, ["a", 3]]
    streamed = [
        {"header": {"queryId": "none", "schema": "`ID` STRING, `TOTAL` INTEGER"}},
        {"row": {"columns": ["a", 3]}},
        {"finalMessage": "Query Completed"},
    ]
    accept = {"accept": "application/vnd.ksql.v1+json, */*;q=0.1"}
    assert http.post("/query-stream", json={"sql": PULL}, headers=accept).json() == streamed
    assert http.post("/query", json={"ksql": PULL}).json() == streamed


def test_a_pull_as_arrow(http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Struct((StructField("Day", Scalar.DATE), StructField("at", Map(Scalar.STRING, Scalar.TIME))))
    types = {"N": Scalar.INTEGER, "T": Scalar.TIME, "S": Scalar.TIMESTAMP, "P": DecimalType(6, 2), "L": Array(inner)}
    moment, noon = datetime.datetime(2024, 1, 31, 6, tzinfo=datetime.UTC), datetime.time(12)
    stored = {
        "r0": [1, None],
        "r1": [43_200_000, None],
        "r2": [moment.replace(tzinfo=None), None],
        "r3": [Decimal("1.50"), None],
        "r4": [[{"f0": moment.date(), "f1": [("a", 43_200_000)]}, None], None],
    }
    arrays = [
        pa.array(values, arrow_type(type_)) for values, type_ in zip(stored.values(), types.values(), strict=True)
    ]
    rows = pa.concat_tables([pa.table(arrays, names=list(stored))] * 2).slice(1, 2)
    columns = tuple(ResultColumn(name, type_) for name, type_ in types.items())
    monkeypatch.setattr(service, "pull", lambda *_: PullResult(columns, rows, Time(1), "not current"))
    accept = {"accept": "application/vnd.apache.arrow.stream"}
    response = http.post("/query-stream", json={"sql": PULL}, headers=accept)
    assert response.headers["content-type"] == accept["accept"]
    found = pa.ipc.open_stream(response.content).read_all()
    assert found.schema.metadata == {b"notice": b"not current"}
    assert found.to_pylist() == [
        dict.fromkeys(types),
        {
            "N": 1,
            "T": noon,
            "S": moment,
            "P": Decimal("1.50"),
            "L": [{"Day": moment.date(), "at": [("a", noon)]}, None],
        },
    ]


def test_only_pulls_are_sent_as_arrow(http: httpx.Client) -> None:
    accept = {"accept": "application/vnd.apache.arrow.stream"}
    for sql in (PUSH, "PRINT orders;"):
        refused = http.post("/query-stream", json={"sql": sql}, headers=accept)
        assert refused.status_code == 406
        assert "Arrow" in refused.json()["message"]


def test_a_push_until_its_limit(http: httpx.Client, service: LocalService) -> None:
    """From the earliest, so it begins with the row that is there."""
    service.put("TOTALS", ("a", 1))
    asked = {"sql": PUSH.replace(";", " LIMIT 3;"), "properties": {"auto.offset.reset": "earliest"}}
    with http.stream("POST", "/query-stream", json=asked) as response:
        push = service.next_push()
        found = lines(response)
        parts = [next(found), next(found)]
        service.put("TOTALS", ("a",))
        service.put("TOTALS", ("b", 2), ("c", 3))
        parts += found
    assert parts == [{"queryId": push.id, **HEADER}, ["a", 1], ["a", None], ["b", 2]]
    assert service.has_closed(push)


def test_rows_come_as_they_happen(http: httpx.Client, service: LocalService) -> None:
    with http.stream("POST", "/query-stream", json={"sql": PUSH}) as response:
        parts = lines(response)
        next(parts)
        for total in range(3):
            began = time.monotonic()
            service.put("TOTALS", ("a", total))
            assert next(parts) == ["a", total]
            assert time.monotonic() - began < 0.5


def test_a_push_as_streamed_rows(http: httpx.Client, service: LocalService) -> None:
    with http.stream("POST", "/query", json={"ksql": PUSH.replace(";", " LIMIT 2;")}) as response:
        service.next_push()
        service.put("TOTALS", ("a", 1), ("a",))
        parts = json.loads(response.read())
    assert parts[1:] == [
        {"row": {"columns": ["a", 1]}},
        {"row": {"columns": ["a", None], "tombstone": True}},
        {"finalMessage": "Limit Reached"},
    ]


MARKED, NULLS = [{"tombstone": ["a", None]}], [["a", None]]


@pytest.mark.parametrize(
    ("asked", "first_rows"),
    [
        ({}, NULLS),
        ({"holdfast.tombstones": "nulls"}, NULLS),
        ({"holdfast.tombstones": True}, MARKED),
        ({"holdfast.tombstones": False}, []),
        ({"holdfast.progress": True}, MARKED),
        ({"holdfast.progress": True, "holdfast.tombstones": "NULLS"}, NULLS),
    ],
)
def test_a_deleted_row_is_sent_in_the_form_that_the_client_reads(
    http: httpx.Client, service: LocalService, asked: dict[str, object], first_rows: list[object]
) -> None:
    for place in ("requestProperties", "properties"):
        service.put("TOTALS", ("a", 1), ("b", 1))
        with http.stream("POST", "/query-stream", json={"sql": PUSH, place: asked}) as response:
            service.next_push()
            parts = (part for part in lines(response) if "progress" not in part)
            service.put("TOTALS", ("a",))
            service.put("TOTALS", ("b", 2))
            assert [next(parts) for _ in range(len(first_rows) + 2)][1:] == [*first_rows, ["b", 2]]


def test_an_unknown_response_format_is_refused(http: httpx.Client) -> None:
    asked = {"sql": PUSH, "requestProperties": {"holdfast.tombstones": "perhaps"}}
    error = http.post("/query-stream", json=asked)
    assert (error.status_code, error.json()["hint"]) == (400, "Allowed values are: true, false, nulls.")


def test_progress_says_which_times_are_whole(http: httpx.Client, service: LocalService) -> None:
    with http.stream(
        "POST", "/query-stream", json={"sql": PUSH, "properties": {"holdfast.progress": True}}
    ) as response:
        service.next_push()
        parts = lines(response)
        at = service.put("TOTALS", ("b", 2))
        assert ["b", 2] in parts
        # No change of the row's time is still to come.
        first = next(parts)["progress"]
        assert first > at
        assert next(parts)["progress"] > first, "also when nothing comes"


def test_close_query_ends_a_push(http: httpx.Client, url: str, service: LocalService) -> None:
    with http.stream("POST", "/query-stream", json={"sql": PUSH}) as response:
        push = service.next_push()
        assert httpx.post(f"{url}/close-query", json={"queryId": push.id}).status_code == 200
        assert len(list(lines(response))) == 1
    assert http.post("/close-query", json={"queryId": push.id}).status_code == 400
    assert http.post("/close-query", json={}).status_code == 400


def test_a_client_that_goes_ends_its_query(http: httpx.Client, service: LocalService) -> None:
    with http.stream("POST", "/query-stream", json={"sql": PUSH}) as response:
        push = service.next_push()
        next(lines(response))
    assert service.has_closed(push)


def test_a_client_that_goes_without_reading_ends_its_query(http: httpx.Client, service: LocalService) -> None:
    many = [(f"{i:04}" + "x" * 1000, 1) for i in range(1000)]
    with http.stream("POST", "/query-stream", json={"sql": PUSH}):
        push = service.next_push()
        for _ in range(20):
            service.put("TOTALS", *many)
        time.sleep(0.3)
        assert service.find_push(push.id) is push
    assert service.has_closed(push, 1.5)


def test_an_error_before_the_first_row_is_the_answer(
    http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method in ("pull", "push"):
        monkeypatch.setattr(service, method, raising(ReadError("still building", detail="43 % is done.")))
    for sql in (PULL, PUSH):
        response = http.post("/query-stream", json={"sql": sql})
        assert (response.status_code, response.json()["detail"]) == (400, "43 % is done.")


@pytest.mark.parametrize(("failure", "code"), [(ReadError("the query failed"), 40001), (ValueError(), 50000)])
def test_an_error_on_the_way_is_the_last_part(
    http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch, failure: Exception, code: int
) -> None:
    with http.stream("POST", "/query-stream", json={"sql": PUSH}) as response:
        push = service.next_push()
        monkeypatch.setattr(push, "_read", raising(failure))
        service.put("TOTALS", ("a", 1))
        *_, last = lines(response)
    assert (last["@type"], last["error_code"]) == ("generic_error", code)


def test_pulls_are_answered_beside_many_pushes(url: str, http: httpx.Client, service: LocalService) -> None:
    many = httpx.Client(base_url=url, trust_env=False)
    asked = many.build_request("POST", "/query-stream", json={"sql": PUSH})
    opened = [many.send(asked, stream=True) for _ in range(60)]
    began = time.monotonic()
    assert http.post("/query-stream", json={"sql": PULL}).status_code == 200
    assert time.monotonic() - began < 2
    pushes = [each.push for each in service.open_pushes()]
    assert len(pushes) == 60
    for response in opened:
        response.close()
    assert all(service.has_closed(push, 3) for push in pushes)


def test_values_of_every_type(http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime.datetime(2020, 1, 1, 10, 0, 0, 5000)
    given = {
        Scalar.BOOLEAN: ([True, None], [True, None]),
        Scalar.BIGINT: ([2**63 - 1, None], [2**63 - 1, None]),
        Scalar.DOUBLE: ([float("nan"), 0.5], ["NaN", 0.5]),
        Scalar.STRING: (['ü"\n', None], ['ü"\n', None]),
        Scalar.BYTES: ([b"\x00\xff", None], ["AP8=", None]),
        Scalar.DATE: ([datetime.date(2020, 1, 1), None], ["2020-01-01", None]),
        Scalar.TIME: ([36_000_000, 1], ["10:00:00.000", "00:00:00.001"]),
        Scalar.TIMESTAMP: ([moment, None], ["2020-01-01T10:00:00.005", None]),
        DecimalType(5, 2): ([Decimal("1.20"), None], [Decimal("1.20"), None]),
        Array(Scalar.DATE): ([[datetime.date(2020, 1, 1), None], None], [["2020-01-01", None], None]),
        Map(Scalar.INTEGER, Scalar.TIME): ([[(1, 1)], None], [{"1": "00:00:00.001"}, None]),
        Struct((StructField("A", Scalar.TIMESTAMP),)): (
            [{"f0": moment}, None],
            [{"A": "2020-01-01T10:00:00.005"}, None],
        ),
    }
    columns = tuple(ResultColumn(f"C{i}", type_) for i, type_ in enumerate(given))
    found = pa.table({f"r{i}": pa.array(v[0], arrow_type(t)) for i, (t, v) in enumerate(given.items())})
    monkeypatch.setattr(service, "pull", lambda *_: PullResult(columns, found, Time(1)))
    text = http.post("/query-stream", json={"sql": PULL}).text
    _, *rows = (
        json.loads(line, parse_float=lambda t: Decimal(t) if t == "1.20" else float(t)) for line in text.splitlines()
    )
    assert rows == [list(row) for row in zip(*(sent for _, sent in given.values()), strict=True)]


@pytest.fixture
def asked_at(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The times for which it was asked how far off they are."""
    times: list[int] = []
    left_ms = service.left_ms

    def note(bound: BoundSelect) -> int:
        assert bound.as_of is not None
        assert not bound.as_of.moment.from_now
        times.append(bound.as_of.moment.millis)
        return left_ms(bound)

    monkeypatch.setattr(service, "left_ms", note)
    return times


def test_a_time_that_is_still_to_come_is_waited_for_without_a_thread(
    http: httpx.Client, service: LocalService, asked_at: list[int]
) -> None:
    to_come = service.clock.now_ms() + 120
    answer = http.post("/query-stream", json={"sql": f"SELECT id, total FROM totals AS OF {to_come};"})
    assert list(lines(answer)) == [{"queryId": None, **HEADER}, ["a", 3]]
    assert service.clock.now_ms() >= to_come
    assert len(asked_at) > 1


def test_now_does_not_move_on_while_it_is_waited_for(
    http: httpx.Client, service: LocalService, asked_at: list[int]
) -> None:
    began = service.clock.now_ms()
    answer = http.post("/query-stream", json={"sql": "SELECT id, total FROM totals AS OF now() + 120;"})
    assert list(lines(answer)) == [{"queryId": None, **HEADER}, ["a", 3]]
    (at,) = set(asked_at)
    assert len(asked_at) > 1
    assert began + 120 <= at <= service.clock.now_ms()


def test_an_invalid_time_is_reported_with_its_place(http: httpx.Client) -> None:
    answer = http.post("/query-stream", json={"sql": "SELECT id, total FROM totals AS OF 'soon';"})
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("'soon' is not a valid time")


def test_emit_all_marks_the_end_of_its_snapshot_for_those_who_ask(service, http):
    body = {"sql": "SELECT id, total FROM totals EMIT ALL LIMIT 3;"}
    lines = []
    for options in ({}, {"requestProperties": {"holdfast.progress": True}}):
        service.put("TOTALS", ("a", 1), ("b", 2))
        with http.stream("POST", "/query-stream", json=body | options) as response:
            found = response.iter_lines()
            first_rows = [next(found) for _ in range(5 if options else 3)]
            deleted = service.put("TOTALS", ("a",))
            lines.append([*first_rows, *found][1:])
    assert lines[0] == ['["a",1]', '["b",2]', '["a",null]']
    at = json.loads(lines[1][2])["snapshot"]
    assert lines[1][:4] == ['["a",1]', '["b",2]', f'{{"snapshot":{at}}}', f'{{"progress":{at + 1}}}']
    *_, gone, last = lines[1]
    assert gone == '{"tombstone":["a",null]}'
    assert json.loads(last)["progress"] > deleted
