"""Read-only transactions: one time for all queries, held until the end or until nobody asks any more."""

import time

import pytest

from holdfast.errors import NoTransaction, NotSupported, UnreadableTime
from holdfast.names import CollectionId
from holdfast.serving.transactions import Transactions
from holdfast.sql.moments import BoundAsOf, Moment

from .reading import Reading, plain

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
    reading.now += LATER
    for name in ("T", "I"):
        reading.store.set_upper([CollectionId(name)], reading.now + 1)
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
    with pytest.raises(NoTransaction) as told:
        opened.as_of(id_, (), None)
    assert told.value.message == f'there is no transaction "{id_}"'
    assert told.value.sqlstate == "25P01"


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
    from holdfast.serving.timestamps import explained

    first = reading.put("T", {"a": (1, "x")})
    bound = reading.bound(f"SELECT n FROM t AS OF {first};")
    assert explained(reading.times.choose(bound.tables, bound.as_of), reading.now) == (
        f"               query time: {first}\n"
        "               decided by: AS OF\n"
        f"        latest final time: {first}\n"
        "           can answer now: true\n"
        "\n"
        'object "T":\n'
        "                    since: 1\n"
        f"                    upper: {first + 1}\n"
        "             kept current: true\n"
    )
