"""CREATE OR REPLACE and ALTER: a query goes on from where it is, with another plan."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from holdfast.app import Service
from holdfast.catalog.commands import encode_command
from holdfast.names import TopicName
from holdfast.planner.commands import commands_for
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

from .servers import Servers
from .service_calls import records, rows, run, states

SETUP = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}_s', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{0}_t', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM big WITH (KAFKA_TOPIC = '{0}_big') AS SELECT id, n FROM s WHERE n > 1;
CREATE TABLE per_id WITH (KAFKA_TOPIC = '{0}_per_id') AS SELECT id, SUM(n) AS n FROM big GROUP BY id;
CREATE TABLE names WITH (KAFKA_TOPIC = '{0}_names') AS SELECT id, n FROM t;
INSERT INTO s (id, n) VALUES ('a', 1);
INSERT INTO s (id, n) VALUES ('a', 2);
INSERT INTO t (id, n) VALUES ('a', 7);
"""
BIGGER = """CREATE OR REPLACE STREAM big WITH (KAFKA_TOPIC = '{0}_big') AS
  SELECT id, n, n * 10 AS tens FROM s WHERE n > 3;"""
SHOWN = """CREATE OR REPLACE TABLE per_id WITH (KAFKA_TOPIC = '{0}_per_id') AS
  SELECT id, SUM(n) AS n, UCASE(id) AS name FROM big WHERE tens < 100 GROUP BY id;"""


def test_a_query_goes_on_with_another_plan(servers: Servers) -> None:
    name = str(servers.settings.service_id)
    service = servers.start()
    run(service, SETUP.format(name))
    assert (rows(service, "per_id"), rows(service, "names")) == ({("a", 2)}, {("a", 7)})
    before = states(service)
    run(service, BIGGER.format(name))
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3); INSERT INTO s (id, n) VALUES ('b', 4);")
    assert rows(service, "per_id") == {("a", 2), ("b", 4)}
    run(service, SHOWN.format(name) + "ALTER TABLE t ADD COLUMN note STRING;")
    run(service, "INSERT INTO s (id, n) VALUES ('b', 20);")
    run(service, "INSERT INTO s (id, n) VALUES ('b', 5); INSERT INTO t (id, n, note) VALUES ('b', 8, 'new');")
    # Rows that were there have nothing in the new column until they change.
    assert rows(service, "per_id") == {("a", 2, None), ("b", 9, "B")}
    assert rows(service, "t") == {("a", 7, None), ("b", 8, "new")}
    assert rows(service, "names") == {("a", 7), ("b", 8)}
    assert states(service) == before
    # As a crash leaves it: the command is written, and nothing else of it is done.
    text = f"CREATE OR REPLACE TABLE names WITH (KAFKA_TOPIC = '{name}_names') AS SELECT id, n, note FROM t;"
    (parsed,) = statements(text)
    (command,) = commands_for(bind(parsed.statement, service.catalog, {}), text=parsed.text, number=99)
    service._log.append(*encode_command(command))

    service = servers.start()
    assert states(service).keys() == before.keys()
    run(service, "INSERT INTO s (id, n) VALUES ('a', 6); INSERT INTO t (id, n, note) VALUES ('c', 9, 'x');")
    assert rows(service, "per_id") == {("a", 8, "A"), ("b", 9, "B")}
    assert rows(service, "names") == {("a", 7, None), ("b", 8, None), ("c", 9, "x")}
    assert [value for _, value in records(service, f"{name}_big")] == [
        b'{"N":2}',
        b'{"N":4,"TENS":40}',
        b'{"N":20,"TENS":200}',
        b'{"N":5,"TENS":50}',
        b'{"N":6,"TENS":60}',
    ]
    # New queries see the new columns, of old rows too.
    run(service, "CREATE TABLE tens AS SELECT id, SUM(tens) AS tens, COUNT(*) AS c FROM big GROUP BY id;")
    assert rows(service, "tens") == {("a", 60, 2), ("b", 290, 3)}


@contextmanager
def never_paused(service: Service, monkeypatch: pytest.MonkeyPatch, *topics: str) -> Iterator[list[set[str]]]:
    """A transaction with some topics does not end; yields what was asked for."""
    asked, pause = list[set[str]](), service.publishing.paused

    @contextmanager
    def paused(wanted: Iterable[TopicName]) -> Iterator[bool]:
        asked.append(set(wanted))
        with pause(wanted) as is_paused:
            yield is_paused and asked[-1].isdisjoint(topics)

    with monkeypatch.context() as patched:
        patched.setattr(service.publishing, "paused", paused)
        yield asked


def test_a_query_that_cannot_be_started_now_does_not_keep_others_from_starting(
    servers: Servers, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = str(servers.settings.service_id)
    run(service, SETUP.format(name))
    ids = {str(query.sink): str(query.id) for query in service.queries()}
    run(service, "PAUSE ALL;")
    with never_paused(service, monkeypatch, f"{name}_big"):
        run(service, "RESUME ALL;")
        assert states(service)[ids["BIG"]] == "PAUSED"
        assert states(service)[ids["NAMES"]] == "RUNNING"
    servers.let_pass()
    assert set(states(service).values()) == {"RUNNING"}
    run(service, "INSERT INTO s (id, n) VALUES ('a', 5);")
    assert rows(service, "per_id") == {("a", 7)}


def test_a_query_over_a_stream_whose_publishing_does_not_end_waits_before_it_tries_again(
    servers: Servers, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = str(servers.settings.service_id)
    run(service, SETUP.format(name))
    with never_paused(service, monkeypatch, f"{name}_big") as asked:
        run(service, "CREATE TABLE later AS SELECT id, COUNT(*) AS c FROM big GROUP BY id;")
        for _ in range(10):
            service.coordinator.step()
        assert asked.count({f"{name}_big"}) == 1
        run(service, "INSERT INTO s (id, n) VALUES ('a', 5);")
        assert rows(service, "per_id") == {("a", 7)}
    servers.let_pass()
    assert rows(service, "later") == {("a", 2)}
