"""Partials that have other columns than the state: what a group got, what it lost, and whether it lost anything."""

import pytest

from holdfast.errors import StoreError
from holdfast.names import StateId
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.duckdb.memtable.small import SMALL
from holdfast.runtime.store.port import Layout, Merge, Time
from holdfast.types import Scalar

from .rows import QUERY, merge, partials, plain

COUNTS = StateId("counts")
LAYOUT = Layout((Scalar.BIGINT,), (Scalar.BIGINT,))
EXCHANGED = Merge(
    initial=("0",),
    merged=("CASE WHEN p2 THEN s0 - p1 ELSE s0 END + p0",),
    partial=(Scalar.BIGINT, Scalar.BIGINT, Scalar.BOOLEAN),
)
ARRIVING = EXCHANGED.arriving(LAYOUT)


@pytest.fixture
def store(tmp_path):
    opened = open_store(tmp_path)
    opened.create_state(COUNTS, LAYOUT)
    yield opened
    opened.close()


@pytest.mark.parametrize("more", [0, SMALL + 1], ids=["small", "large"])
def test_what_arrives_can_be_wider_than_what_is_kept(store, more):
    others = [((key,), (1, None, False), 3) for key in range(100, 100 + more)]
    for time, rows in enumerate(
        ([((1,), (5, None, False), 3)], [((1,), (2, 4, True), 7), ((2,), (1, None, False), 7)])
    ):
        stage = store.stage()
        merge(stage, QUERY, COUNTS, partials(ARRIVING, *rows, *others), EXCHANGED)
        found = sorted(row for row in plain(stage.state_delta(COUNTS)) if row[0] < 100)
        stage.commit(Time(time + 1))
    assert found == [(1, True, 5, 3, True, 3, 7), (2, False, None, None, True, 1, 7)]


def test_partials_of_the_wrong_width_are_refused(store):
    with pytest.raises(StoreError, match="rows lack the columns p1, p2"):
        merge(store.stage(), QUERY, COUNTS, partials(LAYOUT, ((1,), (5,), 3)), EXCHANGED)
