"""Both clients against a server: each test is run with one and with the other."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import orjson
import pyarrow as pa
import pytest

from holdfast.client import AsyncClient, BadResponse, Client, RowRefused, ServerError, Unreachable
from holdfast.client.session import INSERT_ROWS
from holdfast.coordinator.commands import Done
from holdfast.errors import ReadError, UnknownColumn
from holdfast.service.status import Health
from holdfast.version import VERSION
from tests.server.local import LocalService, eventually

PULL = "SELECT id, total FROM totals;"
PUSH = "SELECT id, total FROM totals EMIT CHANGES;"


class Waiting:
    """An async client driven from a test that waits, so that one test serves both clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: Any) -> None:
        self._loop, self._it = loop, client

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._it, name)
        if not callable(found):
            return found
        return lambda *args, **more: self._done(found(*args, **more))

    def __enter__(self) -> "Waiting":
        self._done(self._it.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._done(self._it.__aexit__(*error))

    def __iter__(self) -> "Waiting":
        return self

    def __next__(self) -> Any:
        try:
            return self._done(self._it.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def _done(self, made: Any) -> Any:
        if inspect.isawaitable(made):
            return self._loop.run_until_complete(made)
        return Waiting(self._loop, made) if hasattr(made, "__aenter__") else made


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    if request.param == "sync":
        yield Client
        return
    loop = asyncio.new_event_loop()
    yield lambda *args, **more: Waiting(loop, AsyncClient(*args, **more))
    loop.close()


@pytest.fixture
def client(connect: Callable[..., Any], url: str) -> Iterator[Any]:
    with connect(url) as made:
        yield made


def test_statements_and_what_set_says_holds_on(client: Any, service: LocalService) -> None:
    done, described = client.execute("INSERT INTO orders VALUES ('a', 1); DESCRIBE orders;")
    assert done["commandStatus"]["status"] == "SUCCESS"
    assert described["sourceDescription"]["name"] == "ORDERS"
    assert len(service.inserted) == 1
    assert eventually(lambda: service.rows(PULL) == [("a", 4)])
    client.execute("SET 'auto.offset.reset' = 'earliest';")
    with client.stream(PUSH) as stream:
        assert tuple(next(stream)) == ("a", 4)
    with client.stream(PUSH, {"auto.offset.reset": "latest"}) as stream:
        service.put("TOTALS", ("b", 5))
        assert tuple(next(stream)) == ("b", 5)
    client.execute("UNSET 'auto.offset.reset';")
    assert client.session.properties == {}


def test_what_define_says_holds_on(client: Any) -> None:
    client.execute("DEFINE who = 'totals';")
    assert client.session.variables == {"WHO": "totals"}
    (described,) = client.execute("DESCRIBE ${who};")
    assert described["sourceDescription"]["name"] == "TOTALS"
    assert client.query("SELECT id, total FROM ${who};").names == ("ID", "TOTAL")
    client.execute("UNDEFINE who;")
    with pytest.raises(ServerError):
        client.execute("DESCRIBE ${who};")


def test_rows_are_inserted_by_the_server(client: Any, service: LocalService) -> None:
    assert client.insert("orders", [{"id": "a", "amount": 1}, {"ID": "b", "AMOUNT": None}]) == 2
    assert client.insert("orders", pa.table({"id": ["c"], "amount": [3]})) == 1
    with pytest.raises(RowRefused) as caught:
        client.insert("orders", [{"id": "d", "amount": 4}, {"nonsense": 1}, {"id": "e", "amount": 5}])
    assert (caught.value.row, caught.value.rows) == (1, (1,))
    assert len(service.inserted) == 5, "the rows around the refused one are in"
    with pytest.raises(ServerError):
        client.insert("nothing", [{"id": "a"}])


def test_a_query(client: Any, service: LocalService) -> None:
    service.put("TOTALS", ("b", None))
    found = client.query(PULL)
    assert sorted(tuple(row) for row in found) == [("a", 3), ("b", None)]
    assert found.arrow().column("TOTAL").type == pa.int32()


def test_a_query_as_arrow(client: Any) -> None:
    sent, converted = client.arrow("SELECT * FROM totals;"), client.query("SELECT * FROM totals;").arrow()
    assert sent.num_rows > 0
    assert sent.equals(converted)
    with pytest.raises(ServerError, match="only pull queries"):
        client.arrow("SELECT * FROM totals EMIT CHANGES;")


def test_a_stream_ends_with_its_block_and_so_does_its_query(client: Any, service: LocalService) -> None:
    with client.stream(PUSH) as stream:
        push = service.next_push()
        assert stream.header.query == push.id
        first = service.put("TOTALS", ("a", 1))
        assert tuple(next(stream)) == ("a", 1)
        second = service.put("TOTALS", ("a",))
        row = next(stream)
        assert (row.tombstone, row["ID"]) == (True, "a")
        assert first < stream.time <= second, "the time before which nothing more comes"
        assert service.find_push(push.id) is push
    assert service.find_push(push.id) is None, "the query is closed when the block has ended, not some time later"


def test_a_stream_that_breaks_out_by_an_error_is_closed(client: Any, service: LocalService) -> None:
    def broken() -> None:
        with client.stream(PUSH):
            raise RuntimeError("the caller's own")

    with pytest.raises(RuntimeError):
        broken()
    assert service.open_pushes() == []


def test_a_stream_ends_when_another_closes_its_query(client: Any, service: LocalService, url: str) -> None:
    with client.stream(PUSH) as stream:
        push = service.next_push()
        service.put("TOTALS", ("a", 1))
        assert next(stream)["ID"] == "a"
        closing = threading.Thread(target=lambda: Client(url).close_query(push.id))
        closing.start()
        assert list(stream) == []
        closing.join()


def test_a_query_that_fails_on_the_way(client: Any, service: LocalService) -> None:
    with client.stream(PUSH) as stream:
        push = service.next_push()
        service.put("TOTALS", ("a", 1))
        assert next(stream)["TOTAL"] == 1
        push.fail(ReadError("the table is gone", hint="Make it again."))
        with pytest.raises(ReadError, match="the table is gone") as caught:
            next(stream)
    assert isinstance(caught.value, ServerError)
    assert caught.value.hint == "Make it again."


def test_errors_have_the_place_and_what_was_done_before(client: Any) -> None:
    with pytest.raises(UnknownColumn) as caught:
        client.query("SELECT idd FROM totals;")
    assert caught.value.position.column == 8
    assert caught.value.hint == 'Did you mean "ID"?'
    with pytest.raises(ServerError) as later:
        client.execute("INSERT INTO orders VALUES ('a', 1); DROP TABLE nothing;")
    assert [entity["@type"] for entity in later.value.entities] == ["currentStatus"]
    assert later.value.statement == "DROP TABLE nothing"
    with pytest.raises(ServerError, match="no push query"):
        client.close_query("nobody")


def test_info_and_health(client: Any, service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.info()["version"] == VERSION
    assert client.health()["isHealthy"] is True
    monkeypatch.setattr(service, "health", lambda: Health(False, {"kafka": "away"}))
    assert client.health()["details"]["kafka"] == {"isHealthy": False, "message": "away"}


def test_a_server_that_is_not_there(connect: Callable[..., Any]) -> None:
    with connect("http://127.0.0.1:1") as nobody:
        for call in (nobody.info, lambda: nobody.execute("SHOW STREAMS;"), lambda: nobody.query("SELECT 1;")):
            with pytest.raises(Unreachable, match="cannot reach a server"):
                call()
    with connect("nowhere") as wrong, pytest.raises(Unreachable, match="is not the address"):
        wrong.info()


# ---- what only a transport of the test's own can show


def answering(connect: Callable[..., Any], answer: Callable[[httpx.Request], httpx.Response]) -> Any:
    return connect("http://test", transport=httpx.MockTransport(answer))


def test_a_server_of_another_kind(connect: Callable[..., Any]) -> None:
    with (
        answering(connect, lambda _: httpx.Response(404, text="<html>")) as other,
        pytest.raises(BadResponse, match="is not a Holdfast server"),
    ):
        other.execute("SHOW STREAMS;")
    with (
        answering(connect, lambda _: httpx.Response(200, content=b"")) as silent,
        pytest.raises(BadResponse, match="sent nothing"),
    ):
        silent.query("SELECT 1;")


def test_rows_are_inserted_in_requests_of_bounded_size(connect: Callable[..., Any]) -> None:
    seen: list[list[Any]] = []

    def take(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/inserts-stream"
        lines = [orjson.loads(line) for line in request.content.splitlines()]
        seen.append(lines)
        acks = b"".join(orjson.dumps({"status": "ok", "seq": i}) + b"\n" for i in range(len(lines) - 1))
        return httpx.Response(200, content=acks)

    rows = ({"id": f"k{i}", "at": i} for i in range(INSERT_ROWS + 1))
    with answering(connect, take) as made:
        assert made.insert("orders", rows) == INSERT_ROWS + 1
        assert [len(lines) for lines in seen] == [INSERT_ROWS + 1, 2]
        assert seen[1] == [{"target": "orders"}, {"id": f"k{INSERT_ROWS}", "at": INSERT_ROWS}]
        seen.clear()
        assert made.insert("orders", pa.table({"id": ["x", None], "b": [b"\x00", b"\x01"]})) == 2
        assert seen == [[{"target": "orders"}, {"id": "x", "b": "AA=="}, {"id": None, "b": "AQ=="}]]
        assert made.insert("orders", []) == 0
        with pytest.raises(TypeError, match=r"a row cannot be sent: .* object"):
            made.insert("orders", [{"id": object()}])


def test_a_row_that_is_refused_is_named(connect: Callable[..., Any]) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        sent = len(request.content.splitlines()) - 1
        if sent == INSERT_ROWS:
            return httpx.Response(200, content=b'{"status":"ok","seq":0}\n' * sent)
        error = {"status": "error", "seq": 1, "error_code": 40000, "message": "not a number", "sqlstate": "42804"}
        return httpx.Response(200, content=b'{"status":"ok","seq":0}\n' + orjson.dumps(error) + b"\n")

    with answering(connect, refuse) as made, pytest.raises(RowRefused, match="not a number") as caught:
        made.insert("orders", [{"id": i} for i in range(INSERT_ROWS + 2)])
    assert caught.value.row == INSERT_ROWS + 1
    assert caught.value.sqlstate == "42804"


def test_the_queries_of_a_transaction_are_sent_with_it(
    url: str, service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    end = service.end_transaction

    def note(id_: str, *, commits: bool) -> list[Done]:
        ended.append(commits)
        return end(id_, commits=commits)

    monkeypatch.setattr(service, "end_transaction", note)
    with Client(url) as client:

        def total_after(change: int) -> int:
            service.put("TOTALS", ("a", change))
            ((_, total),) = client.query(PULL)
            return int(total)

        with client.transaction():
            assert [total_after(n) for n in (4, 5)] == [4, 4], "the first one chooses the time"
        assert total_after(6) == 6
        with pytest.raises(ValueError, match="mine"), client.transaction():
            raise ValueError("mine")
        assert total_after(7) == 7
    assert ended == [True, False]
