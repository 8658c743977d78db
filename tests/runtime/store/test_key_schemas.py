"""The ranges that Kafka Streams tests of its key schemas (`WindowKeySchemaTest`, `SessionKeySchemaTest`).

There, windows and keys are bytes in one order, and bounds must not cut off keys that are longer or shorter than the
bound, or whose bytes are greater than those of a timestamp. Here, the same keys and times are in a store, and a range
must have the windows of its key and no others.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from holdfast.names import CollectionId, QueryId
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.store.duckdb import DuckDbStore, open_store
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.memory import MemoryStore
from holdfast.runtime.store.port import GroupRead, Layout, Store, Time
from holdfast.types import Scalar
from tests.runtime.store.rows import plain, upserts

QUERY, WINDOWS, SESSIONS, TEXTS = QueryId("Q"), *map(CollectionId, ("windows", "sessions", "texts"))
LAYOUTS = {
    WINDOWS: Layout((Scalar.BYTES, Scalar.BIGINT, Scalar.BIGINT), (Scalar.BIGINT,), 1, 1),
    SESSIONS: Layout((Scalar.BYTES, Scalar.BIGINT, Scalar.BIGINT), (Scalar.BIGINT,), 1, 2),
    TEXTS: Layout((Scalar.STRING, Scalar.BIGINT, Scalar.BIGINT), (Scalar.BIGINT,), 1, 1),
}
LAST = 2**63 - 1
KEYS = [
    b"",
    b"\x00",
    b"\x00\x00",
    b"\x0a",
    b"\x0a\x0b",
    b"\x0a\x0b\x0c",
    b"\x0a\x0b\x0c\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\x0a\x0b\x0c\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x0c\x00\x09",
    b"\x0c\x0c\x09",
    b"\xff",
    b"\xff\xff",
]
TIMES = [0, 1, 42, 0x0AFFFFFFFFFFFFFF, 0x7000000000000000, LAST - 10, LAST]
"""Small ones, some whose bytes are greater than those of keys, and the greatest."""

Bounds = tuple[bytes | str, int, int]


@pytest.fixture(scope="module", params=["tables", "memory of the store", "model"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder: Path = tmp_path_factory.mktemp("schemas")
    opened: DuckDbStore | MemoryStore = MemoryStore() if request.param == "model" else open_store(folder)
    for collection, layout in LAYOUTS.items():
        opened.create_collection(collection, layout, window_ms=1_000)
    stage = opened.stage()
    for collection, layout in LAYOUTS.items():
        rows = [((key, start, end), (number,), 1) for number, (key, start, end) in enumerate(stored(collection))]
        stage.upsert(QUERY, collection, upserts(layout, *rows))
    stage.commit(Time(10))
    opened.set_upper(list(LAYOUTS), Time(11))
    if request.param == "tables" and isinstance(opened, DuckDbStore):
        with opened._core.write_lock:
            flush.flush_all(opened._core)
    yield opened
    opened.close()


def stored(collection: CollectionId) -> Sequence[Bounds]:
    if collection == SESSIONS:
        return [(key, start, end) for key in KEYS for start, end in product(TIMES, TIMES) if start <= end]
    keys = [key.decode("latin-1") for key in KEYS] if collection == TEXTS else KEYS
    return [(key, start, min(start + 10, LAST)) for key in keys for start in TIMES]


def fetch(
    store: Store, collection: CollectionId, keys: Sequence[bytes | str], first: int | None, last: int | None
) -> list[Bounds]:
    asked = pa.table({"k0": pa.array(keys, arrow_type(LAYOUTS[collection].key[0]))})
    read = GroupRead(collection, Time(10), asked, with_group=True, first=first, last=last)
    return sorted((key, start, end) for key, start, end, *_ in plain(store.read_groups(read)))


@pytest.mark.parametrize("collection", LAYOUTS)
@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param(0, LAST, id="upper bound with a large timestamp"),
        pytest.param(0, 0, id="upper bound with timestamp zero"),
        pytest.param(0, 42, id="lower bound with timestamp zero"),
        pytest.param(42, 42, id="lower bound with another timestamp"),
        pytest.param(42, LAST - 10, id="both bounds"),
        pytest.param(0x0AFFFFFFFFFFFFFF, 0x0AFFFFFFFFFFFFFF, id="a timestamp with the bytes of keys"),
        pytest.param(LAST, LAST, id="the greatest timestamp"),
        pytest.param(None, 42, id="no lower bound"),
        pytest.param(42, None, id="no upper bound"),
        pytest.param(None, None, id="no bounds"),
        pytest.param(43, 44, id="nothing between the bounds"),
        pytest.param(42, 1, id="bounds that are reversed"),
    ],
)
def test_the_windows_of_a_key_between_bounds(
    store: Store, collection: CollectionId, first: int | None, last: int | None
) -> None:
    """Exact keys: neither longer ones that begin with them, nor shorter ones, nor those of which they are a part."""
    windows, ordered = stored(collection), LAYOUTS[collection].ordered
    assert ordered is not None
    low, high = (0 if first is None else first), (LAST if last is None else last)
    for key in {key for key, _, _ in windows}:
        expected = [window for window in windows if window[0] == key and low <= window[ordered] <= high]
        assert fetch(store, collection, [key], first, last) == sorted(expected), key


@pytest.mark.parametrize("collection", LAYOUTS)
def test_a_key_that_is_not_there_has_no_windows(store: Store, collection: CollectionId) -> None:
    """Trailing zeros are part of a key."""
    missing: bytes | str = "\0\0\0" if collection == TEXTS else b"\x00\x00\x00"
    assert fetch(store, collection, [missing], None, None) == []


@pytest.mark.parametrize("collection", LAYOUTS)
def test_the_windows_of_several_keys(store: Store, collection: CollectionId) -> None:
    windows = stored(collection)
    keys = sorted({key for key, _, _ in windows})
    found = fetch(store, collection, [keys[3], keys[0], keys[3], keys[5]], None, None)
    assert found == sorted(window for window in windows if window[0] in (keys[0], keys[3], keys[5]))
    assert fetch(store, collection, keys, None, None) == sorted(windows)
