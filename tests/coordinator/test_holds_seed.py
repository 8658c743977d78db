"""The design of holds, sentence by sentence: each test is named after one of its sentences, in their order.

Some sentences have their tests elsewhere, under their own words: in `test_holds.py` (where a hold may be, MAX LAG,
going backward, dropping what is held), `test_advances.py` (batches), `test_holds_transaction.py` (creating an object
together with a hold on it; holds on indexes and on objects being separate; indexes after a restart),
`tests/serving/pull/test_paths.py` (an AS OF query considers only what is valid for its time), `tests/sql/test_hold.py`
(the forms of the statements).

Sentences that do not apply:
- "marked in an error state and the read holds are released": decided otherwise, a hold that lags moves on by itself;
- schemas, databases and privileges (CREATE, SELECT, USAGE) and clusters: there is one of each and one user;
- `read_capabilities`, `implied_capability` as names of fields, and everything about cost in memory of other systems.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.catalog.system import system_table
from holdfast.errors import BindError, HoldfastError, HoldTimeError, SyntaxProblem, UnreadableTime, WrongObjectKind
from holdfast.names import CollectionId
from holdfast.runtime.spark.engine import Engine
from holdfast.serving.transactions import Transactions
from holdfast.sql.bind.hold import BoundCreateHold
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse
from tests.serving.client_reads import plain

from .hold_world import START, WINDOW, World

TABLES = (CollectionId("T"), CollectionId("I"))


def since(world: World, id_: CollectionId = TABLES[0]) -> int:
    return world.store.frontier(id_).since


def implied(world: World) -> int:
    return world.store.implied_since(TABLES[0])


def pinned(world: World, name: str) -> int:
    return next(status.pinned.rows for status in world.holds.status() if status.hold.name == name)


def transactions(world: World) -> Transactions:
    tables = world.catalog.tables
    return Transactions(world.store, world.reading.times, lambda: tables, idle_seconds=60)


def in_transaction(world: World, opened: Transactions, id_: str, query: str) -> list[tuple]:
    bound = world.reading.bound(f"{query};")
    return world.rows(f"{query} AS OF {opened.as_of(id_, bound.tables, bound.as_of).moment.millis};")


# ---- Solution Proposal


def test_a_hold_acquires_read_holds_on_listed_objects_at_a_specific_timestamp(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t, i AT {early};")
    world.go(START + 2 * WINDOW)
    assert [since(world, id_) for id_ in TABLES] == [early, early]
    (kept,) = world.store.holds().values()
    assert (kept.on, kept.at) == (TABLES, early)


def test_the_hold_must_be_manually_advanced_which_will_release_the_previous_read_hold(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    for step in (2, 3, 4):
        world.go(START + step * WINDOW)
        assert (since(world), world.at("H")) == (early, early)
    world.run("ALTER HOLD h ADVANCE;")
    world.store.compact(limit=1_000)
    assert since(world) == world.at("H") == implied(world)


def test_a_hold_can_be_created_on_indexes_materialized_views_tables_and_sources(world: World) -> None:
    world.define("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t WHERE n > 1;")
    world.define("CREATE INDEX ix ON t (n);")
    bound = bind(parse("CREATE HOLD h ON t, v, ix;")[0].statement, world.catalog)
    assert isinstance(bound, BoundCreateHold)
    assert [(held.name, held.KIND) for held in bound.on] == [
        ("T", "table"),
        ("V", "materialized view"),
        ("IX", "index"),
    ]


def test_a_hold_cannot_exist_on_sinks_streams_or_unmaterialized_views(world: World) -> None:
    world.define("CREATE STREAM s (n INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON');")
    world.define("CREATE VIEW v AS SELECT id, n FROM t;")
    for name in ("s", "v", "mz_tables"):
        with pytest.raises(HoldfastError):
            world.run(f"CREATE HOLD h ON {name};")
    with pytest.raises(WrongObjectKind, match='a hold cannot be on "S", which is a stream'):
        world.run("CREATE HOLD h ON s;")
    assert (dict(world.catalog.holds), world.store.holds()) == ({}, {})


def test_if_at_is_specified_the_read_hold_is_created_at_that_time(world: World) -> None:
    world.run(f"CREATE HOLD h ON t AT {world.now() + 5};")
    assert world.at("H") == world.now() + 5


def test_for_each_object_in_the_hold_the_time_must_be_in_advance(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD of_t ON t AT {early};")
    world.go(START + 2 * WINDOW)
    with pytest.raises(HoldTimeError, match="cannot be at"):
        world.run(f"CREATE HOLD h ON t, i AT {early};")
    world.run(f"CREATE HOLD h ON t AT {early};")


def test_safe_swapping_out_of_one_hold_for_another(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    world.go(START + 2 * WINDOW)
    world.run(f"CREATE HOLD h2 ON t AT {early};")
    world.commit("DROP HOLD h; ALTER HOLD h2 RENAME TO h;")
    world.go(START + 3 * WINDOW)
    assert (set(world.catalog.holds), world.at("H"), since(world)) == ({"H"}, early, early)


def test_a_drop_will_release_its_current_read_hold(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    world.go(START + 2 * WINDOW)
    world.run("DROP HOLD h;")
    world.store.compact(limit=1_000)
    assert since(world) == implied(world) > early


@pytest.mark.parametrize("end", ["DROP HOLD h;", "ALTER HOLD h ADVANCE;"])
def test_in_progress_transactions_will_not_be_affected_but_will_continue_to_run(world: World, end: str) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    opened = transactions(world)
    id_ = opened.begin()
    was = in_transaction(world, opened, id_, "SELECT n FROM t")
    world.go(START + 2 * WINDOW)
    world.run(end)
    world.go(START + 3 * WINDOW)
    assert in_transaction(world, opened, id_, "SELECT n FROM t") == was
    opened.end(id_)
    world.go(START + 4 * WINDOW)
    assert since(world) > early


def test_those_will_still_be_acquiring_their_own_read_holds_in_addition_to_the_hold_object(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    sub = world.reading.subscribe(f"SUBSCRIBE t AS OF {early};")
    world.run("DROP HOLD h;")
    world.go(START + 2 * WINDOW)
    assert since(world) == early, "the subscription has read nothing yet"
    sub.close()
    world.store.compact(limit=1_000)
    assert since(world) == implied(world)


def test_a_hold_will_increase_resource_consumption_in_proportion_to_the_time_it_is_held_for(world: World) -> None:
    world.run(f"CREATE HOLD h ON t AT {world.now()};")
    found = []
    for step in range(2, 6):
        world.go(START + step * WINDOW)
        found.append(pinned(world, "H"))
    assert [after - before for before, after in pairwise(found)] == [1, 1, 1]


def test_users_must_periodically_advance_the_hold_to_allow_for_resources_to_be_released(world: World) -> None:
    world.run(f"CREATE HOLD h ON t, i AT {world.now()};")
    for step in range(2, 6):
        world.go(START + step * WINDOW)
    (status,) = world.holds.status()
    assert status.pinned.rows >= 6
    assert status.pinned.bytes >= status.pinned.rows * 16
    world.run("ALTER HOLD h ADVANCE;")
    world.store.compact(limit=1_000)
    (status,) = world.holds.status()
    assert (status.pinned.rows, status.pinned.bytes) == (0, 0)
    left = world.store.changes(TABLES[0], world.store.frontier(TABLES[0]).since, world.now())
    assert left.num_rows <= 1


def test_what_another_hold_or_a_reader_keeps_too_is_not_pinned_by_a_hold(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD first ON t AT {early};")
    world.go(START + 2 * WINDOW)
    world.go(START + 3 * WINDOW)
    world.run("CREATE HOLD second ON t;")
    world.go(START + 4 * WINDOW)
    alone = pinned(world, "FIRST")
    assert alone > 0
    assert pinned(world, "SECOND") == 0
    world.run(f"CREATE HOLD third ON t AT {early};")
    assert (pinned(world, "FIRST"), pinned(world, "THIRD")) == (0, 0)
    world.run("DROP HOLD third;")
    token = world.store.pin(TABLES[0], early)
    assert pinned(world, "FIRST") == 0
    world.store.unpin(token)
    assert pinned(world, "FIRST") == alone
    world.run("DROP HOLD second;")
    assert pinned(world, "FIRST") > alone


def test_if_to_is_specified_the_new_time_will_be_created_at_that_time(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    world.run(f"ALTER HOLD h ADVANCE TO {early + 7};")
    assert world.at("H") == early + 7


def test_the_new_time_must_be_greater_or_equal_to_the_lowest_of_all_holds_and_the_frontier(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD low ON t AT {early};")
    world.run(f"CREATE HOLD h ON t AT {early + 10};")
    world.go(START + 2 * WINDOW)
    world.run(f"ALTER HOLD h ADVANCE TO {early};")
    with pytest.raises(HoldTimeError) as raised:
        world.run(f"ALTER HOLD h ADVANCE TO {early - 1};")
    assert raised.value.hint == f"Valid times are {early} and later."
    assert world.at("H") == early
    world.run("DROP HOLD low;")
    world.run(f"ALTER HOLD h ADVANCE TO {early};")
    assert world.at("H") == early, "its own time is one of all holds"


def test_the_hold_releases_its_current_read_hold_and_acquires_a_new_read_hold_at_the_new_time(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t, i AT {early};")
    world.go(START + 2 * WINDOW)
    world.run(f"ALTER HOLD h ADVANCE TO {early + 20};")
    world.store.compact(limit=1_000)
    assert [since(world, id_) for id_ in TABLES] == [early + 20, early + 20]
    world.go(START + 4 * WINDOW)
    assert [since(world, id_) for id_ in TABLES] == [early + 20, early + 20]


def test_the_max_lag_option_is_a_duration_and_defaults_to_three_hours(world: World) -> None:
    world.run("CREATE HOLD h ON t;")
    world.run("CREATE HOLD g ON t WITH (MAX LAG = '90 min'::INTERVAL);")
    assert [hold.max_lag_ms for hold in world.catalog.holds.values()] == [10_800_000, 5_400_000]
    with pytest.raises(BindError):
        world.run("CREATE HOLD wrong ON t WITH (MAX LAG = 'soon');")


def test_transactions_and_subscribe_are_not_affected_by_an_automatic_advance(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early} WITH (MAX LAG = '20 min');")
    opened = transactions(world)
    id_ = opened.begin()
    was = in_transaction(world, opened, id_, "SELECT n FROM t")
    sub = world.reading.subscribe(f"SUBSCRIBE t AS OF {early};")
    world.go(START + 3 * WINDOW)
    assert [status.advanced for status in world.holds.status()] == [1]
    assert world.at("H") > early
    assert in_transaction(world, opened, id_, "SELECT n FROM t") == was
    batch = sub.next(1)
    assert batch is not None
    assert plain(batch.rows)[0][0] == early
    sub.close()
    opened.end(id_)


@pytest.mark.parametrize("query", ["SELECT id FROM t AS OF {0};", "SUBSCRIBE t AS OF {0};"])
def test_select_and_subscribe_as_of_a_time_before_a_hold_return_a_helpful_error_message(
    world: World, query: str
) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    world.go(START + 2 * WINDOW)
    ask = world.rows if query.startswith("SELECT") else world.reading.subscribe
    with pytest.raises(UnreadableTime) as raised:
        ask(query.format(early - 1))
    assert raised.value.message == "could not find a valid timestamp for the query"
    assert f'The nearest hold is "H" on "T" at {early}, which is in advance of it.' in (raised.value.detail or "")
    assert raised.value.hint == f"Valid times are {early} and later."


def test_if_the_drop_is_cascade_any_holds_on_the_dropped_object_are_also_dropped(world: World) -> None:
    world.run("CREATE HOLD both ON t, i;")
    world.run("CREATE HOLD other ON i;")
    world.run("DROP TABLE t CASCADE;")
    assert set(world.catalog.holds) == {"OTHER"}
    assert [kept.on for kept in world.store.holds().values()] == [(TABLES[1],)]


@pytest.mark.parametrize("change", ["ADD i", "DROP t", "SET (ON = i)", "ON t, i"])
def test_holds_cannot_be_mutated_after_creation(world: World, change: str) -> None:
    world.run("CREATE HOLD h ON t;")
    with pytest.raises(SyntaxProblem):
        world.run(f"ALTER HOLD h {change};")
    assert [hold.on for hold in world.catalog.holds.values()] == [("T",)]


def test_but_they_can_be_renamed_in_a_transaction_and_so_can_achieve_the_same_goal(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    world.run(f"CREATE HOLD wider ON t, i AT {early};")
    world.commit("ALTER HOLD h RENAME TO gone; ALTER HOLD wider RENAME TO h; DROP HOLD gone;")
    (hold,) = world.catalog.holds.values()
    assert (hold.name, hold.on, world.at("H")) == ("H", ("T", "I"), early)
    world.go(START + 2 * WINDOW)
    assert world.rows(f"SELECT id FROM i AS OF {early};") == [(1,)]


# ---- Monitoring


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("mz_catalog.mz_holds", "`ID` STRING KEY, `SCHEMA_ID` STRING, `NAME` STRING, `AT` BIGINT"),
        ("mz_catalog.mz_hold_objects", "`HOLD_ID` STRING KEY, `ON_ID` STRING KEY"),
    ],
)
def test_to_monitor_holds_a_new_table_will_be_maintained_with_structure(name: str, columns: str) -> None:
    """That they are maintained: `test_system_tables.py`."""
    found = system_table(name)
    assert found is not None
    assert str(found.schema) == columns


# ---- Implementation of time tracking


def test_the_time_must_be_written_down_on_creation_then_updated_on_advancement(engine: Engine, tmp_path: Path) -> None:
    world = World(engine, tmp_path)
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    assert world.reopened().holds() == world.store.holds()
    world.run(f"ALTER HOLD h ADVANCE TO {early + 3};")
    (kept,) = world.reopened().holds().values()
    assert (kept.on, kept.at) == ((TABLES[0],), early + 3)
    world.close()


def test_the_hold_objects_are_in_the_catalog_and_advancing_writes_none_of_it(world: World) -> None:
    world.run(f"CREATE HOLD h ON t AT {world.now()};")
    before = world.catalog
    world.run("ALTER HOLD h ADVANCE;")
    assert world.catalog is before
