"""Transactions: one time for all queries, held until nobody asks any more; or changes of the catalog, all or none."""

import time

import pytest

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    FailedTransaction,
    HoldfastError,
    NotInTransaction,
    NoTransaction,
    NotSupported,
    ReadOnlyTransaction,
    RolledBack,
    UnreadableTime,
)
from holdfast.names import CollectionId
from holdfast.planner.draft import Change, Draft
from holdfast.serving.transactions import Transactions
from holdfast.sql.literals.moment import BoundAsOf, Moment
from holdfast.sql.syntax.parse import parse
from tests.planner.test_draft import SETUP, catalog_of
from tests.serving.client_reads import Reading, plain

LATER = 5_000_000
"""Milliseconds after which what is not held is forgotten."""


def transactions(reading: Reading, idle: float = 60) -> Transactions:
    tables = reading.driver.catalog.tables
    return Transactions(reading.store, reading.times, lambda: tables, idle_seconds=idle)


def ask(reading: Reading, opened: Transactions, id_: str, query: str) -> list[tuple[object, ...]]:
    bound = reading.bound(f"{query};")
    as_of = opened.as_of(id_, bound.tables, bound.as_of)
    return plain(reading.pull(f"{query} AS OF {as_of.moment.millis};").rows)


def forget(reading: Reading) -> None:
    reading.let_pass(LATER)
    reading.store.compact(limit=1_000)


def test_all_queries_see_the_time_of_the_first(reading):
    opened = transactions(reading)
    reading.put("T", {"a": (1, "x")})
    id_ = opened.begin()
    reading.put("I", {1: (10,)})
    assert ask(reading, opened, id_, "SELECT n FROM t") == [(1,)]
    reading.put("T", {"a": (2, "x")})
    reading.put("I", {1: (20,)})
    forget(reading)
    assert ask(reading, opened, id_, "SELECT n FROM t") == [(1,)]
    assert ask(reading, opened, id_, "SELECT n FROM i") == [(10,)], "a table that the first query did not read"
    opened.end(id_)
    assert plain(reading.pull("SELECT n FROM t;").rows) == [(2,)]


@pytest.mark.parametrize("way", ["end", "idle", "close_all"])
def test_what_is_held_is_let_go(way, reading):
    opened = transactions(reading, idle=0.05 if way == "idle" else 60)
    first = reading.put("T", {"a": (1, "x")})
    id_ = opened.begin()
    ask(reading, opened, id_, "SELECT n FROM t")
    if way == "end":
        opened.end(id_)
    elif way == "close_all":
        opened.close_all()
    else:
        deadline = time.monotonic() + 10
        while opened._open and time.monotonic() < deadline:
            time.sleep(0.01)
    forget(reading)
    assert reading.store.frontier(CollectionId("T")).since > first
    with pytest.raises(NoTransaction) as raised:
        opened.as_of(id_, (), None)
    assert raised.value.message == f'there is no transaction "{id_}"'
    assert raised.value.sqlstate == "25P01"


def test_the_first_query_may_choose_the_time(reading):
    opened = transactions(reading)
    first = reading.put("T", {"a": (1, "x")})
    reading.put("T", {"a": (2, "x")})
    id_ = opened.begin()
    bound = reading.bound(f"SELECT n FROM t AS OF {first};")
    assert opened.as_of(id_, bound.tables, bound.as_of) == BoundAsOf(Moment(first))
    with pytest.raises(NotSupported, match="AS OF cannot be used after the first query of a transaction"):
        opened.as_of(id_, bound.tables, bound.as_of)
    opened.end(id_)


def test_a_first_query_that_fails_leaves_the_choice_open(reading):
    opened = transactions(reading)
    reading.put("T", {"a": (1, "x")})
    forget(reading)
    id_ = opened.begin()
    early = reading.bound("SELECT n FROM t AS OF 1;")
    with pytest.raises(UnreadableTime):
        opened.as_of(id_, early.tables, early.as_of)
    assert ask(reading, opened, id_, "SELECT n FROM t") == [(1,)]
    opened.end(id_)


def test_what_a_time_was_decided_by_is_explained(reading):
    from holdfast.serving.time.choice import explain_choice

    first = reading.put("T", {"a": (1, "x")})
    bound = reading.bound(f"SELECT n FROM t AS OF {first};")
    assert explain_choice(reading.times.choose(bound.tables, bound.as_of), reading.now) == (
        f"               query time: {first}\n"
        "               decided by: AS OF\n"
        f"        latest final time: {first}\n"
        "           can answer now: true\n"
        "\n"
        'object "T":\n'
        f"                    since: {reading.store.frontier(CollectionId('T')).since}\n"
        f"                    upper: {first + 1}\n"
        "                   frozen: false\n"
    )


# ---- those that change something


def of_catalog() -> Transactions:
    """No store is asked by a transaction that does not read."""
    return Transactions(None, None, tuple, idle_seconds=60)


def change(opened: Transactions, id_: str, text: str, catalog: Catalog) -> Change:
    (parsed,) = parse(text)
    return opened.change(id_, parsed, {}, catalog)


@pytest.fixture(scope="module")
def holds() -> Catalog:
    return catalog_of(SETUP)


def test_a_draft_is_given_to_whoever_commits_it(holds):
    opened = of_catalog()
    id_ = opened.begin()
    change(opened, id_, "DROP HOLD a;", holds)
    change(opened, id_, "ALTER HOLD b RENAME TO a;", holds)
    assert [each.text for each in opened.end(id_).statements] == ["DROP HOLD a", "ALTER HOLD b RENAME TO a"]
    with pytest.raises(NoTransaction):
        opened.end(id_)


def test_a_transaction_that_is_rolled_back_changes_nothing(holds):
    opened = of_catalog()
    id_ = opened.begin()
    change(opened, id_, "DROP HOLD a;", holds)
    assert opened.end(id_, commits=False) == Draft()
    with pytest.raises(NoTransaction):
        change(opened, id_, "DROP HOLD b;", holds)


@pytest.mark.parametrize("first", ["DROP HOLD nothing;", "DROP TABLE t;"])
def test_after_an_error_nothing_but_rollback_can_follow(holds, first):
    opened = of_catalog()
    id_ = opened.begin()
    change(opened, id_, "DROP HOLD a;", holds)
    with pytest.raises(HoldfastError) as reason:
        change(opened, id_, first, holds)
    with pytest.raises(FailedTransaction) as raised:
        change(opened, id_, "ALTER HOLD b RENAME TO a;", holds)
    assert str(raised.value) == (
        f"the transaction has failed; only ROLLBACK is allowed\nDETAIL: The first error was: {reason.value.message}."
    )
    assert raised.value.sqlstate == "25P02"
    with pytest.raises(RolledBack) as ended:
        opened.end(id_)
    assert str(ended.value) == (
        "the transaction was rolled back because one of its statements failed\n"
        f"DETAIL: The first error was: {reason.value.message}.\n"
        "HINT: Start a new one with BEGIN."
    )
    assert ended.value.sqlstate == "40000"


def test_a_failed_transaction_can_be_rolled_back(holds):
    opened = of_catalog()
    id_ = opened.begin()
    opened.fail(id_, "no such statement")
    with pytest.raises(FailedTransaction):
        change(opened, id_, "DROP HOLD a;", holds)
    assert opened.end(id_, commits=False) == Draft()


def test_one_that_changes_something_does_not_read(holds):
    opened = of_catalog()
    id_ = opened.begin()
    change(opened, id_, "DROP HOLD a;", holds)
    with pytest.raises(NotInTransaction) as raised:
        opened.as_of(id_, (), None)
    assert str(raised.value) == (
        "a transaction with DDL statements cannot run queries\nHINT: End it with COMMIT or ROLLBACK first."
    )


def test_one_that_reads_does_not_change_anything(reading, holds):
    opened = transactions(reading)
    reading.put("T", {"a": (1, "x")})
    id_ = opened.begin()
    ask(reading, opened, id_, "SELECT n FROM t")
    only = opened.begin(read_only=True)
    for each in (id_, only):
        with pytest.raises(ReadOnlyTransaction) as raised:
            change(opened, each, "DROP HOLD a;", holds)
        assert raised.value.message == "DROP cannot be run in a read-only transaction"
        assert opened.end(each) == Draft()


def test_a_draft_is_forgotten_when_nobody_goes_on_with_it(holds):
    opened = Transactions(None, None, tuple, idle_seconds=0.05)
    id_ = opened.begin()
    change(opened, id_, "DROP HOLD a;", holds)
    deadline = time.monotonic() + 10
    while opened._open and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(NoTransaction):
        opened.end(id_)
