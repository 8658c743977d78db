"""Pulls by key over HTTP: those that are known are not parsed, those that come together are read together."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import httpx
import pytest

from holdfast.errors import ReadError
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.server import statements
from holdfast.server.http.framing import Framing
from holdfast.server.http.key_lookups import LookupReader
from holdfast.server.http.query_templates import key_positions, split_text
from holdfast.server.http.server import listen, running
from holdfast.serving.pull.key_lookup import Key, KeyLookup, KeyRows
from tests.server.local import LocalService, eventually, raising

TABLES = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT, s STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE two (a INT PRIMARY KEY, b STRING PRIMARY KEY, n INT)
  WITH (KAFKA_TOPIC='two', FORMAT='JSON', PARTITIONS=1);
CREATE TABLE i (id INT PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='i', VALUE_FORMAT='JSON', PARTITIONS=1);
"""


class Served(LocalService):
    """Notes which keys are looked up, and looks them up when it may."""

    def __init__(self, engines: EnginePair) -> None:
        self.reads: list[list[Key]] = []
        self.go = Event()
        self.go.set()
        super().__init__(engines)

    def lookup(self, prepared: KeyLookup, keys: Sequence[Key]) -> KeyRows:
        self.reads.append(list(keys))
        assert self.go.wait(10)
        return super().lookup(prepared, keys)


@pytest.fixture(scope="module")
def started(engines: EnginePair) -> Iterator[Served]:
    served = Served(engines)
    served.run(TABLES)
    served.put("T", *((f"k{i}", i, f"s{i}") for i in range(100)))
    served.put("TWO", (1, "x", 1), (2, "x", 2))
    assert eventually(lambda: [len(served.rows(f"SELECT * FROM {t};")) for t in ("t", "two")] == [100, 2])
    yield served
    served.stop()


@pytest.fixture
def service(started: Served) -> Served:
    started.reads.clear()
    return started


@pytest.fixture
def url(service: Served) -> Iterator[str]:
    """A server for each test: what it knows of queries is the test's own."""
    with running(service, listen(service.settings)) as server:
        yield server.url


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that had to be parsed."""
    texts: list[str] = []

    class Noting(statements.Script):
        def __init__(self, text: str, *more: Any) -> None:
            texts.append(text)
            super().__init__(text, *more)

    monkeypatch.setattr(statements, "Script", Noting)
    return texts


def rows(http: httpx.Client, text: str) -> list[object]:
    response = http.post("/query-stream", json={"sql": text}, headers={"accept": "application/json"})
    assert response.status_code == 200, response.text
    return response.json()[1:]


def test_a_query_that_is_known_is_not_parsed_again(http: httpx.Client, service: Served, parsed: list[str]) -> None:
    for i in (5, 6, 7, 200):
        assert rows(http, f"SELECT n, s FROM t WHERE id = 'k{i}';") == ([[i, f"s{i}"]] if i < 100 else [])
    assert len(parsed) == 1
    assert service.reads == [[("k6",)], [("k7",)], [("k200",)]]


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/query-stream", "application/vnd.ksqlapi.delimited.v1"),
        ("/query-stream", "application/json"),
        ("/query-stream", "application/vnd.ksql.v1+json"),
        ("/query", "*/*"),
    ],
)
@pytest.mark.parametrize("key", ["k1", "nowhere"])
@pytest.mark.parametrize(
    "items",
    ["*, n + 1 AS m", "CAST('NaN' AS DOUBLE) AS d, n / 2e0 AS h", "ARRAY[n] AS a, CAST(n AS DECIMAL(9, 2)) AS c"],
)
def test_the_answer_is_the_same_in_every_form(http: httpx.Client, path: str, accept: str, key: str, items: str) -> None:
    body = {"ksql": f"SELECT {items} FROM t WHERE id = '{key}';"}
    headers = {"accept": accept}
    first, second = (http.post(path, json=body, headers=headers) for _ in range(2))
    # A property keeps a request from being looked up.
    parsed = http.post(path, json={**body, "streamsProperties": {"auto.offset.reset": "latest"}}, headers=headers)
    assert first.content == second.content == parsed.content
    assert second.headers["content-type"] == parsed.headers["content-type"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # Other constants are part of what a query means.
        ("SELECT n + 1 AS m FROM t WHERE id = 'k1';", "SELECT n + 2 AS m FROM t WHERE id = 'k1';", [[3]]),
        ("SELECT 'a' AS m FROM t WHERE id = 'k1';", "SELECT 'b' AS m FROM t WHERE id = 'k1';", [["b"]]),
        ("SELECT n FROM two WHERE a = 1 AND b = 'x';", "SELECT n FROM two WHERE a = 2 AND b = 'x';", [[2]]),
        ("SELECT n FROM two WHERE b = 'x' AND a = 1;", "SELECT n FROM two WHERE b = 'y' AND a = 1;", []),
        # What looks like a constant of the same kind, and is none.
        ("SELECT n FROM t WHERE id = 'k1';", "SELECT n FROM t WHERE id = 'it''s';", []),
        ("SELECT n FROM t WHERE id = 'k1';", "SELECT n FROM t WHERE id = 'k1' -- 'k2'", [[1]]),
        ("SELECT n AS `1` FROM t WHERE id = 'k1';", "SELECT n AS `2` FROM t WHERE id = 'k1';", [[1]]),
        ("SELECT n AS x1 FROM t WHERE id = 'k1';", "SELECT n AS x2 FROM t WHERE id = 'k2';", [[2]]),
        ("SELECT n FROM t WHERE id = 'k1' LIMIT 1;", "SELECT n FROM t WHERE id = 'k1' LIMIT 0;", []),
    ],
)
def test_queries_that_look_alike_are_not_confused(
    http: httpx.Client, first: str, second: str, expected: list[object]
) -> None:
    for text in (first, first):
        rows(http, text)
    assert [rows(http, second) for _ in range(2)] == [expected, expected]


def test_errors_are_reported_as_ever(http: httpx.Client, service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT n FROM t WHERE id = 'k1';"
    rows(http, text)
    with monkeypatch.context() as failing:
        failing.setattr(service, "lookup", raising(ReadError("cannot be read", hint="Wait.")))
        response = http.post("/query-stream", json={"sql": text})
    assert (response.status_code, response.json()["hint"], response.json()["statementText"]) == (400, "Wait.", text)
    assert rows(http, text) == [[1]]
    assert http.post("/query-stream", json={"sql": text, "properties": {"no.such": 1}}).status_code == 400


def test_another_catalog_makes_queries_unknown(http: httpx.Client, service: Served, parsed: list[str]) -> None:
    service.run("CREATE TABLE other (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');")
    text = "SELECT n FROM other WHERE id = 'k1';"
    assert eventually(lambda: rows(http, text) == [[1]])
    parsed.clear()
    service.run("DROP TABLE i;")
    assert rows(http, text) == [[1]]
    assert rows(http, text) == [[1]]
    assert len(parsed) == 1
    service.run("DROP TABLE other;")
    assert http.post("/query-stream", json={"sql": text}).json()["sqlstate"] == "42P01"


@pytest.fixture
def arrived(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """The keys of requests for cached queries that have reached the server."""
    keys: list[Key] = []
    content = LookupReader.content

    async def noting(reader: LookupReader, key: Key, framing: Framing) -> bytes:
        keys.append(key)
        return await content(reader, key, framing)

    monkeypatch.setattr(LookupReader, "content", noting)
    return keys


def test_what_is_asked_at_the_same_time_is_read_at_once(url: str, service: Served, arrived: list[Key]) -> None:
    def ask(i: int) -> list[object]:
        with httpx.Client(base_url=url, timeout=20, trust_env=False) as client:
            return rows(client, f"SELECT n FROM t WHERE id = 'k{i}';")

    assert ask(0) == [[0]]
    service.go.clear()
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ask, i) for i in range(20)]
        # The first is being read; the others come meanwhile.
        assert eventually(lambda: len(arrived) == 20 and len(service.reads) > 0)
        assert len(service.reads) == 1
        service.go.set()
        assert [future.result() for future in asked] == [[[i]] for i in range(20)]
    assert len(service.reads) < 10
    assert sorted(key for read in service.reads for key in read) == sorted((f"k{i}",) for i in range(20))


# ---- how texts are cut


@pytest.mark.parametrize(
    ("text", "template", "constants"),
    [
        ("SELECT * FROM t WHERE id = 'a';", "SELECT * FROM t WHERE id = ?s;", ("a",)),
        ("x='it''s' and y=12", "x=?s and y=?n", ("it's", 12)),
        ('"a""1" = 1', '"a""1" = ?n', (1,)),
        ("a1 = b2.c3 + 4.5 + 1e5 + 1234567890", "a1 = b2.c3 + 4.5 + 1e5 + 1234567890", ()),
        ("a[1]->b = 2", "a[?n]->b = ?n", (1, 2)),
        ("''", "?s", ("",)),
    ],
)
def test_a_text_and_its_constants(text: str, template: str, constants: tuple[object, ...]) -> None:
    found = split_text(text)
    assert found is not None
    assert (found.template, found.constants) == (template, constants)


@pytest.mark.parametrize("text", ["a -- b", "a /* b */", "${a}", "a = ?", "'open", "`open", '"open', "x" * 3000])
def test_texts_that_only_a_parser_should_read(text: str) -> None:
    assert split_text(text) is None


def test_the_parser_has_the_last_word_on_what_the_key_is() -> None:
    text = "SELECT n FROM t WHERE id = 'a' AND m = 5;"
    found, at = split_text(text), text.index("'a'")
    assert found is not None
    places = key_positions(found, (at,), ("a",))
    assert places is not None
    assert (places.key_of(found), places.rest_of(found)) == (("a",), (5,))
    assert key_positions(found, (at,), ("b",)) is None
    assert key_positions(found, (at - 1,), ("a",)) is None
