"""The calls of both clients, driven by hand: no transport is needed to know what they do."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from holdfast.client.core import Call, ClientCore, Open, Read, Reply, Send, Step
from holdfast.client.errors import ServerError, Unreachable
from holdfast.client.session import INSERT_ROWS

SERVER = "http://server"
HEADER = b'{"queryId": "PUSH_1", "columnNames": ["ID"], "columnTypes": ["STRING"]}\n'


def driven(call: Call[Any], answers: Sequence[object]) -> tuple[list[Step], Any]:
    """The steps of a call that is given these answers, and what it returns."""
    steps, left = [], list(answers)
    try:
        step = next(call)
        while True:
            steps.append(step)
            answer = left.pop(0)
            step = call.throw(answer) if isinstance(answer, Exception) else call.send(answer)
    except StopIteration as done:
        assert not left
        return steps, done.value


def replied(body: object, status: int = 200) -> Reply:
    return Reply(status, orjson.dumps(body))


def test_an_insert_sends_a_request_for_so_many_rows_and_waits_for_its_answer() -> None:
    rows = ({"id": n} for n in range(INSERT_ROWS + 2))
    taken = [b'{"status": "ok"}\n' * INSERT_ROWS, b'{"status": "ok"}\n' * 2]
    steps, done = driven(ClientCore(SERVER, None).insert("t", rows), [Reply(200, body) for body in taken])
    assert done == INSERT_ROWS + 2
    assert [step.request.path for step in steps if isinstance(step, Send)] == ["/inserts-stream"] * 2


def test_a_stream_reads_until_it_knows_its_columns_and_then_as_rows_are_taken() -> None:
    rows = ClientCore(f"{SERVER}/", None).rows("SELECT id FROM t EMIT CHANGES;", None)
    with pytest.raises(RuntimeError):
        _ = rows.header
    steps, _ = driven(rows.open(), [Reply(200, b""), HEADER[:20], HEADER[20:] + b'["a"]\n["b'])
    assert [type(step) for step in steps] == [Open, Read, Read]
    assert rows.header.names == ("ID",)
    assert driven(rows.next(), []) == ([], ("a",))
    assert driven(rows.next(), [b'"]\n{"progress": 7}\n'])[1] == ("b",)
    steps, _ = driven(rows.close(), [replied({})])
    assert [step.request.path for step in steps if isinstance(step, Send)] == ["/close-query"]
    assert driven(rows.close(), []) == ([], None)


def test_a_stream_that_has_ended_needs_no_closing() -> None:
    rows = ClientCore(SERVER, None).rows("SELECT id FROM t;", None)
    driven(rows.open(), [Reply(200, b""), HEADER])
    assert driven(rows.next(), [b'{"progress": 7}\n', None])[1] is None
    assert rows.time == 7
    assert driven(rows.close(), []) == ([], None)


def test_a_refused_question_is_raised_and_a_server_that_is_gone_does_not_hinder_the_end() -> None:
    rows = ClientCore(SERVER, None).rows("SELECT id FROM t;", None)
    with pytest.raises(ServerError, match="no such table"):
        driven(rows.open(), [replied({"message": "no such table"}, 400)])
    assert driven(rows.close(), []) == ([], None)
    rows = ClientCore(SERVER, None).rows("SELECT id FROM t EMIT CHANGES;", None)
    driven(rows.open(), [Reply(200, b""), HEADER])
    driven(rows.close(), [Unreachable("gone")])
