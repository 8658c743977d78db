"""/inserts-stream: rows in, an answer for each."""

import json
import socket
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import httpx
import pytest

from holdfast.errors import KafkaError
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.server.http import inserts_stream as inserts
from tests.server.local import LocalService, SharedServer, raising
from tests.server.sockets import connect

EVERY_TYPE = """
CREATE STREAM kinds (k STRING KEY, b BOOLEAN, i INT, l BIGINT, d DOUBLE, n DECIMAL(5, 2), s STRING, y BYTES, da DATE,
  t TIME, ts TIMESTAMP, a ARRAY<INT>, m MAP<STRING, BIGINT>, st STRUCT<X INT, `y` STRING>, `low` INT)
  WITH (KAFKA_TOPIC='kinds', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


@pytest.fixture(scope="module")
def shared(engines: EnginePair) -> Iterator[SharedServer]:
    server = SharedServer(engines, EVERY_TYPE)
    yield server
    server.close()


def body(target: object, *rows: object) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in ({"target": target}, *rows))


def answers(response: httpx.Response) -> list[dict]:
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def test_rows_are_taken_and_answered_in_turn(http: httpx.Client, service: LocalService) -> None:
    response = http.post("/inserts-stream", content=body("orders", {"ID": "a", "AMOUNT": 5}, {"id": "b"}))
    assert response.headers["content-type"] == "application/vnd.ksqlapi.delimited.v1"
    assert answers(response) == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert service.inserted == [(b"a", 5), (b"b", None)]
    assert all(record.timestamp > 1_600_000_000_000 for record in service.records("orders"))


def test_the_form_of_an_array(http: httpx.Client) -> None:
    wanted = {"accept": "application/json"}
    response = http.post("/inserts-stream", content=body("`ORDERS`", {"ID": "a"}, {"no": 1}), headers=wanted)
    assert [acks["status"] for acks in response.json()] == ["ok", "error"]
    assert http.post("/inserts-stream", content=body("orders"), headers=wanted).json() == []


def test_a_row_that_does_not_fit_leaves_the_others_alone(http: httpx.Client, service: LocalService) -> None:
    rows = [{"ID": "a", "AMOUNT": 1}, {"ID": "b", "AMOUT": 2}, {"ID": "c", "AMOUNT": "3"}, {"ID": "d", "AMOUNT": 4}, []]
    first, misspelt, text, last, array = answers(http.post("/inserts-stream", content=body("ORDERS", *rows)))
    assert (first["status"], last) == ("ok", {"status": "ok", "seq": 3})
    assert (misspelt["status"], misspelt["seq"], misspelt["error_code"]) == ("error", 1, 40000)
    assert misspelt["hint"] == 'Did you mean "AMOUNT"?'
    assert text["message"] == 'column "AMOUNT" is INTEGER and cannot take "3"'
    assert array["message"] == "a row is not a JSON object"
    assert [key for key, _ in service.inserted] == [b"a", b"d"]


def test_values_of_every_type(http: httpx.Client, service: LocalService) -> None:
    row = {
        "K": "k", "B": True, "I": -5, "L": 2**62, "D": 1, "S": "ü", "Y": "AP8=", "DA": "2020-02-29",
        "T": "10:00:00.001", "TS": "2020-01-01T10:00:00.005", "A": [1, None], "M": {"a": 1}, "ST": {"x": 1, "`y`": "z"},
        "`low`": 7, "ROWTIME": 123,
    }  # fmt: skip
    content = body("kinds", row).replace(b'"K": "k"', b'"K": "k", "N": 123.45')
    assert answers(http.post("/inserts-stream", content=content)) == [{"status": "ok", "seq": 0}]
    (record,) = service.records("kinds")
    assert (record.key, record.timestamp) == (b"k", 123)
    assert json.loads(record.value or b"", parse_float=Decimal) == {
        "B": True, "I": -5, "L": 2**62, "D": 1.0, "N": Decimal("123.45"), "S": "ü", "Y": "AP8=",
        "DA": (date(2020, 2, 29) - date(1970, 1, 1)).days, "T": 36_000_001,
        "TS": int(datetime(2020, 1, 1, 10, 0, 0, 5000, UTC).timestamp() * 1_000), "A": [1, None], "M": {"a": 1},
        "ST": {"X": 1, "y": "z"}, "low": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("b", 1), ("i", True), ("i", 1.5), ("i", 2**31), ("l", 2**63), ("d", "1"), ("d", 10**309), ("n", 1234.5),
        ("n", 1.005), ("n", "x"), ("s", 1), ("y", "?"), ("y", 5), ("da", "2020-13-01"), ("t", "25:00"), ("ts", "noon"),
        ("a", 5), ("a", ["x"]), ("m", []), ("m", {"a": "x"}), ("st", {"z": 1}), ("st", []),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_values_that_do_not_fit(http: httpx.Client, column: str, value: object) -> None:
    (acks,) = answers(http.post("/inserts-stream", content=body("kinds", {column: value})))
    assert (acks["status"], acks["sqlstate"]) == ("error", "42804")
    assert f'column "{column.upper()}" is' in acks["message"]


@pytest.mark.parametrize("row", [b'{"ID": "\\ud800"}', b'{"ID": "a", "ID": "b"', b"NaN", b"{" * 5000])
def test_lines_that_cannot_be_rows(http: httpx.Client, service: LocalService, row: bytes) -> None:
    acks = answers(http.post("/inserts-stream", content=body("orders") + row + b'\n{"ID": "good"}\n'))
    assert [each["status"] for each in acks] == ["error", "ok"]
    assert [key for key, _ in service.inserted] == [b"good"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the body is empty"),
        (b"nonsense\n", "the first line is not JSON"),
        (b"[]\n", "the first line is not a JSON object"),
        (b"{}\n", '"target" in the first line is missing'),
        (body(5), '"target" in the first line is missing'),
        (body("nothing"), 'stream or table "NOTHING" does not exist'),
    ],
)
def test_first_lines_that_say_no_target(http: httpx.Client, content: bytes, says: str) -> None:
    response = http.post("/inserts-stream", content=content)
    assert (response.status_code, response.json()["error_code"]) == (400, 40000)
    assert says in response.json()["message"]


def test_a_table_needs_its_key(http: httpx.Client, service: LocalService) -> None:
    service.run(
        "CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    acks = answers(http.post("/inserts-stream", content=body("t", {"N": 1}, {"ID": "a", "N": 1})))
    assert [each["status"] for each in acks] == ["error", "ok"]


def test_when_kafka_is_away_every_row_fails_with_the_reason(
    http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "insert_rows", raising(KafkaError("Kafka is away")))
    acks = answers(http.post("/inserts-stream", content=body("orders", {"ID": "a"}, {"ID": "b"})))
    assert [(each["status"], each["error_code"], each["message"]) for each in acks] == [
        ("error", 50000, "Kafka is away")
    ] * 2


def test_an_answer_comes_before_the_next_row_is_sent(url: str, service: LocalService) -> None:
    client = connect(url)
    client.sendall(b"POST /inserts-stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    send_chunk(client, body("orders"))
    with client.makefile("rb") as file:
        while file.readline().strip():
            pass
        acks = chunks(file)
        for number in range(3):
            send_chunk(client, b'{"ID": "%d"}\n' % number)
            assert json.loads(next(acks)) == {"status": "ok", "seq": number}
        client.sendall(b"0\r\n\r\n")
        assert list(acks) == []
    client.close()
    assert len(service.inserted) == 3


@pytest.mark.parametrize("good", [True, False])
def test_a_client_may_send_all_before_it_reads(url: str, good: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over HTTP/2, with a window that its answers do not fit into."""
    monkeypatch.setattr(inserts, "MAX_PENDING_ERRORS", 100_000)
    rows = [{"ID" if good else "IDD": str(i)} for i in range(20_000)]
    with httpx.Client(http1=False, http2=True, timeout=30, trust_env=False) as client:
        acks = answers(client.post(f"{url}/inserts-stream", content=body("orders", *rows)))
    assert [each["seq"] for each in acks] == list(range(20_000))
    assert {each["status"] for each in acks} == {"ok" if good else "error"}


def send_chunk(client: socket.socket, content: bytes) -> None:
    client.sendall(b"%x\r\n" % len(content) + content + b"\r\n")


def chunks(file) -> Iterator[bytes]:
    while size := int(file.readline(), 16):
        yield file.read(size)
        file.readline()
