"""Everything downstream of a query that does not run is frozen with it, and every read at one time is consistent."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from holdfast.app import Service
from holdfast.errors import HoldfastError, UnreadableTime
from holdfast.names import CollectionId, QueryId, TopicName
from holdfast.runtime.spark.engine import Engine, Failure
from holdfast.runtime.store.port import Frontier
from holdfast.serving.results import PullResult
from holdfast.sql.bind.hold import BoundAdvanceHold
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse

from .servers import Servers
from .service_calls import rows, run, states

SETUP = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}_s', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE names (id STRING PRIMARY KEY, name STRING)
  WITH (KAFKA_TOPIC = '{0}_names', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM big WITH (KAFKA_TOPIC = '{0}_big') AS SELECT id, n FROM s WHERE n > 0;
CREATE TABLE good WITH (KAFKA_TOPIC = '{0}_good') AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;
CREATE TABLE bad WITH (KAFKA_TOPIC = '{0}_bad') AS SELECT id, COUNT(*) AS n FROM big GROUP BY id;
CREATE TABLE named WITH (KAFKA_TOPIC = '{0}_named') AS
  SELECT names.id AS id, name, n FROM names LEFT JOIN bad ON names.id = bad.id;
CREATE MATERIALIZED VIEW deep AS SELECT id, name, n FROM named WHERE n > 0;
INSERT INTO names (id, name) VALUES ('a', 'Ann');
INSERT INTO s (id, n) VALUES ('a', 1);
INSERT INTO s (id, n) VALUES ('a', 2);
"""
FROZEN = ("BAD", "NAMED", "DEEP")


@pytest.fixture
def service(servers: Servers) -> Service:
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id))
    assert rows(service, "deep") == {("a", "Ann", 2)}
    return service


def ids(service: Service) -> dict[str, QueryId]:
    return {str(query.sink): query.id for query in service.queries() if query.sink is not None}


def read(service: Service, sql: str) -> PullResult:
    bound = bind(parse(sql)[0].statement, service.catalog, {})
    assert isinstance(bound, BoundSelect | BoundRead)
    return service.pull(bound)


def contents(result: PullResult) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in result.rows.to_pylist()}


def frontiers(service: Service) -> Mapping[str, Frontier]:
    return {name: service._store.frontier(CollectionId(name)) for name in ("GOOD", "NAMES", *FROZEN)}


def check_agreement(service: Service) -> None:
    """GOOD and BAD count the same records: at one time they have the same rows, and DEEP those of BAD.

    Or there is no such time, once the history of GOOD is compacted.
    """
    both = "SELECT good.id AS id, good.n AS g, bad.n AS b FROM good JOIN bad ON good.id = bad.id;"
    with suppress(UnreadableTime):
        assert all(good == bad for _, good, bad in contents(read(service, both)))
    deep = "SELECT deep.id AS id, deep.n AS d, good.n AS g FROM deep JOIN good ON good.id = deep.id;"
    with suppress(UnreadableTime):
        assert all(deep == good for _, deep, good in contents(read(service, deep)))


def pause(service: Service) -> QueryId:
    run(service, f"PAUSE {ids(service)['BIG']};")
    return ids(service)["BIG"]


def test_what_is_downstream_of_a_paused_query_is_frozen_with_it(service: Service, servers: Servers) -> None:
    big = pause(service)
    frozen_at = frontiers(service)
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3); INSERT INTO names (id, name) VALUES ('a', 'Anna');")
    servers.let_pass()
    assert (rows(service, "good"), rows(service, "bad")) == ({("a", 3)}, {("a", 2)})
    assert rows(service, "names") == {("a", "Anna")}
    check_agreement(service)
    # NAMED goes on with its other input, but what that changes is not readable yet.
    assert (rows(service, "named"), rows(service, "deep")) == ({("a", "Ann", 2)}, {("a", "Ann", 2)})
    assert states(service)[ids(service)["NAMED"]] == "RUNNING"
    found = frontiers(service)
    assert all(found[name].upper == frozen_at[name].upper for name in FROZEN)
    assert len({found[name].upper for name in FROZEN}) == 1
    assert found["GOOD"].upper > frozen_at["GOOD"].upper
    since = found["BAD"].upper - 1
    for name, kind in (("BAD", "table"), ("NAMED", "table"), ("DEEP", "materialized view")):
        notice = f'{kind} "{name}" has been frozen since {since}: query {big} upstream of it is paused'
        assert read(service, f"SELECT * FROM {name};").notice == notice
        with pytest.raises(UnreadableTime, match="could not find a valid timestamp"):
            read(service, f"SELECT * FROM {name} AS OF {since + 1};")
    run(service, "CREATE VIEW plain AS SELECT id, name FROM named;")
    assert read(service, "SELECT * FROM plain;").notice is not None

    run(service, f"RESUME {big};")
    assert rows(service, "bad") == {("a", 3)}
    assert (rows(service, "named"), rows(service, "deep")) == ({("a", "Anna", 3)}, {("a", "Anna", 3)})
    assert read(service, "SELECT * FROM deep;").notice is None
    check_agreement(service)
    # Times between the freeze and now do not have the records of the remap: they are given up.
    assert all(each.since > since for name, each in frontiers(service).items() if name in FROZEN)


def test_what_is_frozen_stays_so_over_a_restart(service: Service, servers: Servers) -> None:
    big = pause(service)
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3); INSERT INTO names (id, name) VALUES ('a', 'Anna');")
    frozen_at = frontiers(service)
    service = servers.start()
    servers.let_pass()
    assert (rows(service, "good"), rows(service, "bad")) == ({("a", 3)}, {("a", 2)})
    assert rows(service, "deep") == {("a", "Ann", 2)}
    check_agreement(service)
    assert all(frontiers(service)[name].upper == frozen_at[name].upper for name in FROZEN)
    run(service, f"RESUME {big};")
    assert rows(service, "deep") == {("a", "Anna", 3)}
    check_agreement(service)


def test_a_hold_keeps_the_time_of_the_freeze(service: Service, servers: Servers) -> None:
    run(service, "CREATE HOLD h ON deep;")
    big = pause(service)
    at = frontiers(service)["DEEP"].upper - 1
    advance = bind(parse(f"ALTER HOLD h ADVANCE TO {at};")[0].statement, service.catalog, {})
    assert isinstance(advance, BoundAdvanceHold)
    service.advance_hold(advance)
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3);")
    run(service, f"RESUME {big};")
    servers.let_pass()
    assert frontiers(service)["DEEP"].since == at
    assert contents(read(service, f"SELECT * FROM deep AS OF {at};")) == {("a", "Ann", 2)}
    assert rows(service, "deep") == {("a", "Ann", 3)}


def test_a_new_table_over_a_frozen_one_waits(service: Service) -> None:
    big = pause(service)
    run(service, "CREATE MATERIALIZED VIEW later AS SELECT id, name FROM named;")
    with pytest.raises(HoldfastError, match="still building") as refused:
        read(service, "SELECT * FROM later;")
    assert refused.value.detail == f"It waits: query {big} upstream of it is paused."
    run(service, f"RESUME {big};")
    assert rows(service, "later") == {("a", "Ann")}


def test_one_of_several_writers_is_paused(service: Service, servers: Servers) -> None:
    """A stream with two writers; what is built while one of them is paused has no readable time before it runs."""
    run(service, "INSERT INTO big SELECT id, n FROM s WHERE n < 0; INSERT INTO s (id, n) VALUES ('a', -1);")
    assert rows(service, "bad") == {("a", 3)}
    (writer,) = (query.id for query in service.queries() if "n < 0" in query.statement)
    run(service, f"PAUSE {writer};")
    run(service, "CREATE TABLE second AS SELECT id, COUNT(*) AS n FROM big GROUP BY id;")
    run(service, "INSERT INTO s (id, n) VALUES ('a', -2); INSERT INTO s (id, n) VALUES ('a', 4);")
    with pytest.raises(HoldfastError, match="no readable time yet") as refused:
        read(service, "SELECT * FROM second;")
    assert refused.value.detail == f"The reason: query {writer} upstream of it is paused."
    assert (rows(service, "good"), rows(service, "bad")) == ({("a", 5)}, {("a", 3)})
    check_agreement(service)
    service = servers.start()
    assert rows(service, "bad") == {("a", 3)}
    run(service, f"RESUME {writer};")
    assert (rows(service, "bad"), rows(service, "second")) == ({("a", 5)}, {("a", 5)})
    check_agreement(service)
    run(service, f"PAUSE {writer}; INSERT INTO s (id, n) VALUES ('a', 5); TERMINATE {writer};")
    # Nothing is upstream of it any more that could go on.
    assert rows(service, "bad") == {("a", 6)}


def test_what_is_downstream_of_a_failed_query_is_frozen_before_the_tick_that_left_it_out(
    service: Service, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Engine.run

    def failing(self, fragments, inputs):
        streams = [i for i, fragment in enumerate(fragments) if "off" in {c.name for c in fragment.columns}]
        found = whole(self, fragments, inputs)
        return [Failure("on purpose") if i in streams else rows for i, rows in enumerate(found)]

    # One tick has a record of each input: NAMED changes in the tick in which BIG fails.
    names = TopicName(f"{servers.settings.service_id}_names")
    servers.broker.append(names, b'{"NAME":"Anna"}', b"a")
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "run", failing)
        servers.write(f"{servers.settings.service_id}_s", b'{"N":3}', key=b"a")
    assert states(service)[ids(service)["BIG"]] == "ERROR"
    tick = service._store.changed_at(CollectionId("NAMED"))
    assert all(frontiers(service)[name].upper <= tick for name in FROZEN)
    assert (rows(service, "good"), rows(service, "bad")) == ({("a", 3)}, {("a", 2)})
    assert rows(service, "deep") == {("a", "Ann", 2)}
    check_agreement(service)
    since, big = frontiers(service)["DEEP"].upper - 1, ids(service)["BIG"]
    assert read(service, "SELECT * FROM deep;").notice == (
        f'materialized view "DEEP" has been frozen since {since}: query {big} upstream of it stopped: on purpose'
    )
    run(service, "INSERT INTO s (id, n) VALUES ('a', 4);")
    check_agreement(service)

    service = servers.start()
    assert (rows(service, "bad"), rows(service, "deep")) == ({("a", 4)}, {("a", "Anna", 4)})
    check_agreement(service)
