"""An object that is created together with a hold on it, in a running service."""

import pytest

from holdfast.app import Service
from holdfast.coordinator.backfill.loop import BackfillLoop
from holdfast.coordinator.backfill.slices import BackfillSlice
from holdfast.errors import HoldfastError, HoldTimeError, UnreadableTime
from holdfast.names import CollectionId
from holdfast.runtime.store.port import Time
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import statements

from .servers import Servers
from .service_calls import followed, rows, run

SETUP = """
CREATE TABLE t (id STRING PRIMARY KEY, g STRING, n INT)
  WITH (KAFKA_TOPIC = '{0}_t', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}_s', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
"""
VIEW = "CREATE MATERIALIZED VIEW per_group AS SELECT g, SUM(n) AS total FROM t GROUP BY g;"


def transaction(service: Service, sql: str) -> list[str]:
    """The statements between BEGIN and COMMIT; gives what COMMIT says."""
    id_ = service.begin_transaction()
    for parsed in statements(sql):
        service.change_in_transaction(id_, parsed, {})
    messages = [done.message for done in service.end_transaction(id_, commits=True)]
    service.run_until_idle()
    return messages


def as_of(service: Service, query: str, at: int) -> set[tuple]:
    bound = bind(next(iter(statements(f"{query} AS OF {at};"))).statement, service.catalog, {})
    assert isinstance(bound, BoundSelect | BoundRead)
    return {tuple(row.values()) for row in service.pull(bound).rows.to_pylist()}


def change(service: Service, id_: str, group: str, n: int) -> Time:
    """The time at which a row is there."""
    run(service, f"INSERT INTO t (id, g, n) VALUES ('{id_}', '{group}', {n});")
    assert (id_, group, n) in rows(service, "t")
    return service._store.changed_at(CollectionId("T"))


def allow_slices(patched: pytest.MonkeyPatch, most: int) -> None:
    """Run at most this many backfill slices."""
    run_slice, done = BackfillLoop._run_slice, []

    def limited(backfill: BackfillLoop) -> BackfillSlice | None:
        cut = run_slice(backfill) if len(done) < most else None
        done.extend([cut] if cut is not None else [])
        return cut

    patched.setattr(BackfillLoop, "_run_slice", limited)


def test_the_history_of_what_is_created_with_a_hold_reaches_back_to_its_inputs_since(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id) + "INSERT INTO t (id, g, n) VALUES ('a', 'x', 1);")
    run(service, "CREATE HOLD long ON t;")
    start = service.holds()[0].at
    times = [change(service, *each) for each in (("b", "x", 2), ("a", "y", 5), ("b", "x", 7))]
    # Longer than the window of the table: only the hold has kept its history.
    servers.let_pass(2)
    with pytest.raises(HoldTimeError) as refused:
        transaction(service, f"{VIEW} CREATE HOLD ON per_group AT {start - 1};")
    assert refused.value.message == (
        f'hold "PER_GROUP_HOLD" cannot be at {start - 1}, where what it holds will have no history'
    )
    assert (set(service.catalog.holds), "PER_GROUP" in service.catalog.objects) == ({"LONG"}, False)
    before = len(service._log.read_all())
    with monkeypatch.context() as patched:
        allow_slices(patched, 0)
        messages = transaction(service, f"{VIEW} CREATE HOLD ON per_group;")
        assert messages == ["Materialized view PER_GROUP created.", f"Hold PER_GROUP_HOLD created at {start}."]
        assert len(service._log.read_all()) == before + 1
        # What it is made of is held for it, whatever becomes of the hold that held it until now.
        run(service, "DROP HOLD long;")
        servers.let_pass(2)
        assert service._store.frontier(CollectionId("T")).since == start
        with pytest.raises(HoldfastError, match="has no time yet"):
            service._holds.at(service.catalog.hold("PER_GROUP_HOLD"))
        # A few slices, and the process dies.
        patched.undo()
        allow_slices(patched, 2)
        service.run_until_idle()
        assert service._store.position(service.catalog.object("PER_GROUP").query).replayed_to == times[0]

    service = servers.start()
    assert rows(service, "per_group") == {("x", 7), ("y", 5)}
    assert service._store.frontier(CollectionId("PER_GROUP")).since == start
    assert [(s.hold.name, s.at, s.advanced) for s in service.holds()] == [("PER_GROUP_HOLD", start, 0)]
    totals = "SELECT g, total FROM per_group"
    found = [as_of(service, totals, at) for at in (start, *times)]
    assert found == [{("x", 1)}, {("x", 3)}, {("x", 2), ("y", 5)}, {("x", 7), ("y", 5)}]
    servers.let_pass()
    assert service._store.frontier(CollectionId("T")).since > start
    assert as_of(service, totals, start) == {("x", 1)}, "its inputs need no longer be held"
    seen = followed(service, "SUBSCRIBE per_group WITH (HOLD = per_group_hold);", 6)
    assert seen[0][0] == start
    assert {row[1:4] for row in seen[-2:]} == {(-1, "x", 2), (1, "x", 7)}
    last = change(service, "c", "z", 9)
    assert rows(service, "per_group") == {("x", 7), ("y", 5), ("z", 9)}
    assert as_of(service, totals, last - 1) == {("x", 7), ("y", 5)}

    # A stream has no history: what is made of it has one from when it is built.
    messages = transaction(service, "CREATE MATERIALIZED VIEW c AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;"
                       "CREATE HOLD counted ON c;")  # fmt: skip
    assert messages == ["Materialized view C created.", "Hold COUNTED created."]
    assert service._store.frontier(CollectionId("C")).upper > 0
    servers.let_pass(1)
    assert [s.at > 0 and s.reason is None for s in service.holds() if s.hold.name == "COUNTED"] == [True]
    (counted,) = (s for s in service.holds() if s.hold.name == "COUNTED")
    servers.let_pass(2)
    assert service._store.frontier(CollectionId("C")).since == counted.at


def test_a_hold_that_is_dropped_while_its_object_is_built_leaves_the_object_right(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(service, SETUP.format(service.settings.service_id) + "INSERT INTO t (id, g, n) VALUES ('a', 'x', 1);")
    run(service, "CREATE HOLD long ON t;")
    for each in (("b", "x", 2), ("a", "y", 5)):
        change(service, *each)
    with monkeypatch.context() as patched:
        allow_slices(patched, 1)
        transaction(service, f"{VIEW} CREATE HOLD h ON per_group;")
        query = service.catalog.object("PER_GROUP").query
        assert service._store.position(query).replayed_to is not None
        run(service, "DROP HOLD h; DROP HOLD long;")
    service.run_until_idle()
    assert rows(service, "per_group") == {("x", 2), ("y", 5)}


def test_a_hold_on_an_index_is_its_own_and_reaches_back_to_the_since_of_its_table(servers: Servers) -> None:
    """If a hold exists for an index, AS OF its time is answered if the index satisfies the query; a hold on any
    non-index object will not also create the hold on its indexes; holds are accounted for when indexes are there again
    after a restart."""
    table, index, later = CollectionId("T"), CollectionId("BY_G"), CollectionId("BY_N")
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id) + "INSERT INTO t (id, g, n) VALUES ('a', 'x', 1);")
    run(service, "CREATE HOLD long ON t;")
    start = service.holds()[0].at
    times = [change(service, *each) for each in (("b", "x", 2), ("a", "y", 5))]
    servers.let_pass(2)
    messages = transaction(service, "CREATE INDEX by_g ON t (g); CREATE HOLD ON by_g;")
    assert messages == ["Index BY_G created.", f"Hold BY_G_HOLD created at {start}."]
    run(service, "CREATE INDEX by_n ON t (n);")
    assert service._store.frontier(index).upper > 0
    assert service._store.frontier(later).upper > 0
    assert {s.hold.name: s.at for s in service.holds()} == {"LONG": start, "BY_G_HOLD": start}
    servers.let_pass(2)
    found = {id_: service._store.frontier(id_).since for id_ in (table, index, later)}
    assert found[table] == found[index] == start, "both are held"
    assert found[later] > times[-1], "the hold on the table holds none of its indexes"
    run(service, "DROP HOLD long;")
    servers.let_pass()
    assert service._store.frontier(table).since > times[-1]
    assert service._store.frontier(index).since == start, "nor does the table hold its indexes"

    service = servers.start()
    assert {s.hold.name: s.at for s in service.holds()} == {"BY_G_HOLD": start}
    servers.let_pass(2)
    assert service._store.frontier(index).since == start
    of_x = "SELECT id, n FROM t WHERE g = 'x'"
    assert [as_of(service, of_x, at) for at in (start, *times)] == [{("a", 1)}, {("a", 1), ("b", 2)}, {("b", 2)}]
    run(service, "DROP INDEX by_g CASCADE;")
    assert not service.catalog.holds
    with pytest.raises(UnreadableTime):
        as_of(service, of_x, start)
