"""The queries of stores as SQL, and rows as keys, windows and values."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.client.stores import (
    StoreType,
    Window,
    Windowed,
    key_value_store,
    open_store,
    session_store,
    window_store,
)
from holdfast.client.stores.port import StoreSchema
from holdfast.errors import BadTime, NotSupported, TypeMismatch, WrongObjectKind

Rows = Sequence[tuple[Any, ...]]


class ListedRows(Iterator[tuple[Any, ...]]):
    """Rows that count how many of them were read."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.read, self.is_closed = rows, 0, False

    def __next__(self) -> tuple[Any, ...]:
        if self.read == len(self.rows):
            raise StopIteration
        self.read += 1
        return self.rows[self.read - 1]

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Queries:
    """A reader of one table, which returns given rows and records the queries."""

    schema_: StoreSchema
    rows_: Rows = ()
    texts: list[str] = field(default_factory=list)
    opened: list[ListedRows] = field(default_factory=list)

    def schema(self, name: str) -> StoreSchema:
        assert name == self.schema_.name
        return self.schema_

    @contextmanager
    def at_one_time(self) -> Iterator["Queries"]:
        yield self

    def rows(self, sql: str) -> ListedRows:
        self.texts.append(sql)
        self.opened.append(ListedRows(self.rows_))
        return self.opened[-1]


def windows(*rows: tuple[Any, ...]) -> Queries:
    return Queries(StoreSchema("clicks", ("key",), ("value",), "TUMBLING"), rows)


def sessions(*rows: tuple[Any, ...]) -> Queries:
    return Queries(StoreSchema("visits", ("key",), ("value",), "SESSION"), rows)


WINDOWS = "SELECT `key`, WINDOWSTART, WINDOWEND, `value` FROM `clicks`"
SESSIONS = "SELECT `key`, WINDOWSTART, WINDOWEND, `value` FROM `visits`"
SOME = Windowed("a", Window(5, 15))


# ---- window stores


def test_one_window_is_fetched_by_key_and_start() -> None:
    reader = windows(("a", 5, 15, 7))
    store = open_store(reader, "clicks", window_store(str, int))
    assert store.fetch("a", 5) == 7
    assert reader.texts == [f"{WINDOWS} WHERE `key` = 'a' AND WINDOWSTART = 5;"]
    assert open_store(windows(), "clicks", window_store(str, int)).fetch("a", 5) is None


def test_ranges_are_inclusive_on_the_window_start_oldest_first() -> None:
    reader = windows(("a", 5, 15, 7), ("a", 10, 20, 8))
    store = open_store(reader, "clicks", window_store(str, int))
    assert list(store.fetch("a", 5, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))) == [(5, 7), (10, 8)]
    list(store.backward_fetch("a", None, 10))
    list(store.fetch_range("a", "b", 1, 2))
    list(store.backward_fetch_range(None, "b", None, None))
    list(store.fetch_all(1, 2))
    list(store.backward_fetch_all(1, None))
    list(store.all())
    list(store.backward_all())
    assert [text.removeprefix(WINDOWS) for text in reader.texts] == [
        " WHERE `key` = 'a' AND WINDOWSTART >= 5 AND WINDOWSTART <= 1000 ORDER BY WINDOWSTART LIMIT 5000;",
        " WHERE `key` = 'a' AND WINDOWSTART <= 10 ORDER BY WINDOWSTART DESC LIMIT 5000;",
        " WHERE `key` >= 'a' AND `key` <= 'b' AND WINDOWSTART >= 1 AND WINDOWSTART <= 2 "
        "ORDER BY WINDOWSTART, `key` LIMIT 5000;",
        " WHERE `key` <= 'b' ORDER BY WINDOWSTART DESC, `key` DESC LIMIT 5000;",
        " WHERE WINDOWSTART >= 1 AND WINDOWSTART <= 2 ORDER BY WINDOWSTART, `key` LIMIT 5000;",
        " WHERE WINDOWSTART >= 1 ORDER BY WINDOWSTART DESC, `key` DESC LIMIT 5000;",
        " ORDER BY WINDOWSTART, `key` LIMIT 5000;",
        " ORDER BY WINDOWSTART DESC, `key` DESC LIMIT 5000;",
    ]


def test_entries_of_several_keys_have_windowed_keys() -> None:
    found = list(open_store(windows(("a", 5, 15, 7)), "clicks", window_store()).all())
    assert found == [(SOME, 7)]
    assert SOME.window.start_time == datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)


def test_an_empty_range_of_keys_is_logged_and_not_queried(caplog: pytest.LogCaptureFixture) -> None:
    reader = windows(("a", 5, 15, 7))
    store = open_store(reader, "clicks", window_store())
    assert list(store.fetch_range("b", "a", 1, 2)) == []
    assert reader.texts == []
    assert "the first key is greater than the last" in caplog.text


def test_fetch_takes_one_or_two_times() -> None:
    store = open_store(windows(), "clicks", window_store())
    with pytest.raises(TypeError, match="a key and two times"):
        store.fetch("a")  # type: ignore[call-overload]
    with pytest.raises(BadTime, match="has no time zone"):
        store.fetch("a", datetime(1970, 1, 1))
    with pytest.raises(BadTime, match="is not a time"):
        store.fetch("a", "yesterday")  # type: ignore[call-overload]


def test_rows_are_read_when_they_are_used_and_closed() -> None:
    reader = windows(("a", 5, 15, 7), ("a", 10, 20, 8))
    store = open_store(reader, "clicks", window_store())
    with store.fetch("a", 5, 10) as entries:
        assert reader.texts == []
        assert next(entries) == (5, 7)
        assert len(reader.texts) == 1
    assert reader.opened[0].is_closed
    assert list(entries) == []


def test_a_store_as_of_a_time() -> None:
    reader = windows(("a", 5, 15, 7))
    store = open_store(reader, "clicks", window_store(), as_of=1_700_000_000_000)
    store.fetch("a", 5)
    list(store.all())
    list(store.as_of(None).all())
    assert [text.endswith(" AS OF 1700000000000;") for text in reader.texts] == [True, True, False]


# ---- session stores


def test_sessions() -> None:
    reader = sessions(("a", 5, 15, 7))
    store = open_store(reader, "visits", session_store(str, int))
    assert list(store.fetch("a")) == [(SOME, 7)]
    assert store.fetch_session("a", 5, 15) == 7
    list(store.find_sessions("a", 10, 20))
    list(store.backward_find_sessions("a", None, 20))
    list(store.find_sessions_range("a", None, 10, None))
    list(store.find_all_sessions(10, 20))
    list(store.backward_fetch("a"))
    list(store.fetch_range("a", "b"))
    list(store.backward_all())
    assert [text.removeprefix(SESSIONS) for text in reader.texts] == [
        " WHERE `key` = 'a' ORDER BY WINDOWEND, WINDOWSTART, `key` LIMIT 5000;",
        " WHERE `key` = 'a' AND WINDOWSTART = 5 AND WINDOWEND = 15;",
        " WHERE `key` = 'a' AND WINDOWEND >= 10 AND WINDOWSTART <= 20 "
        "ORDER BY WINDOWEND, WINDOWSTART, `key` LIMIT 5000;",
        " WHERE `key` = 'a' AND WINDOWSTART <= 20 ORDER BY WINDOWEND DESC, WINDOWSTART DESC, `key` DESC LIMIT 5000;",
        " WHERE `key` >= 'a' AND WINDOWEND >= 10 ORDER BY WINDOWEND, WINDOWSTART, `key` LIMIT 5000;",
        " WHERE WINDOWEND >= 10 AND WINDOWEND <= 20 ORDER BY WINDOWEND, WINDOWSTART, `key` LIMIT 5000;",
        " WHERE `key` = 'a' ORDER BY WINDOWEND DESC, WINDOWSTART DESC, `key` DESC LIMIT 5000;",
        " WHERE `key` >= 'a' AND `key` <= 'b' ORDER BY WINDOWEND, WINDOWSTART, `key` LIMIT 5000;",
        " ORDER BY WINDOWEND DESC, WINDOWSTART DESC, `key` DESC LIMIT 5000;",
    ]


# ---- key-value stores, keys and values


@dataclass
class User:
    name: str
    level: int


def test_a_key_value_store_and_values_of_several_columns() -> None:
    rows = [("ann", "Ann", 3)]
    reader = Queries(StoreSchema("users", ("key",), ("NAME", "LEVEL")), rows)
    assert open_store(reader, "users", key_value_store()).get("ann") == {"NAME": "Ann", "LEVEL": 3}
    typed = open_store(reader, "users", key_value_store(str, User))
    assert typed.get("ann") == User("Ann", 3)
    assert list(typed.reverse_range("a", None)) == [("ann", User("Ann", 3))]
    assert (
        reader.texts[-1]
        == "SELECT `key`, `NAME`, `LEVEL` FROM `users` WHERE `key` >= 'a' ORDER BY `key` DESC LIMIT 5000;"
    )
    counted = Queries(StoreSchema("users", ("key",), ("NAME",)), [(5,)])
    assert open_store(counted, "users", key_value_store()).approximate_num_entries() == 5


def test_a_key_of_several_columns_is_a_tuple() -> None:
    reader = Queries(StoreSchema("t", ("a", "b"), ("v",)), [(1, "x", 2.5)])
    store = open_store(reader, "t", key_value_store())
    assert store.get((1, "x")) == 2.5
    assert list(store.all()) == [((1, "x"), 2.5)]
    assert reader.texts[0] == "SELECT `a`, `b`, `v` FROM `t` WHERE `a` = 1 AND `b` = 'x';"
    with pytest.raises(TypeMismatch, match="is not a key of"):
        store.get(1)
    with pytest.raises(NotSupported, match="has no ranges of keys"):
        store.range((1, "x"), None)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("O'Hara", "'O''Hara'"),
        (-5, "-5"),
        (2.5, "2.5E0"),
        (True, "TRUE"),
        (b"\x01\xff", "TO_BYTES('01ff', 'hex')"),
        (datetime(2024, 1, 31, 6, tzinfo=UTC), "'2024-01-31T06:00:00.000'"),
    ],
)
def test_keys_as_constants(key: Any, text: str) -> None:
    reader = Queries(StoreSchema("t", ("k",), ("v",)))
    open_store(reader, "t", key_value_store()).get(key)
    assert reader.texts == [f"SELECT `k`, `v` FROM `t` WHERE `k` = {text};"]


@pytest.mark.parametrize(
    ("window", "asked", "message"),
    [
        (None, window_store(), '"t" is a key-value store, not a window store'),
        (None, session_store(), '"t" is a key-value store, not a session store'),
        ("TUMBLING", key_value_store(), '"t" is a window store, not a key-value store'),
        ("HOPPING", session_store(), '"t" is a window store, not a session store'),
        ("SESSION", window_store(), '"t" is a session store, not a window store'),
        ("SESSION", key_value_store(), '"t" is a session store, not a key-value store'),
    ],
)
def test_a_store_of_another_type_is_refused(window: str | None, asked: StoreType[Any], message: str) -> None:
    with pytest.raises(WrongObjectKind) as caught:
        open_store(Queries(StoreSchema("t", ("k",), ("v",), window)), "t", asked)
    assert caught.value.message == message
    assert caught.value.hint is not None
