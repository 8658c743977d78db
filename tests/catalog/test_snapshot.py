"""Looking things up in a catalog."""

import pytest

from holdfast.catalog.fold import fold
from holdfast.catalog.snapshot import EMPTY
from holdfast.errors import DependentObjects, DuplicateObject, Position, UnknownObject, WrongObjectKind

from .test_fold import command, create, query

CATALOG = fold(
    [
        command(create("ORDERS")),
        command(create("USERS", kind="Table")),
        command(create("BIG", query=query("ORDERS", "BIG", 2))),
    ]
)
HERE = Position(1, 5, 4)


def test_objects_are_listed_by_kind_in_the_order_of_their_creation():
    assert [stream.name for stream in CATALOG.streams] == ["ORDERS", "BIG"]
    assert [table.name for table in CATALOG.tables] == ["USERS"]


def test_the_error_for_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownObject) as raised:
        CATALOG.relation("ORDER", position=HERE)
    assert str(raised.value) == (
        'stream or table "ORDER" does not exist at line 1, column 5\nHINT: Did you mean "ORDERS"?'
    )
    with pytest.raises(UnknownObject, match="There are no names yet"):
        EMPTY.relation("ORDERS")


def test_the_error_for_a_wrong_kind_names_the_right_one():
    with pytest.raises(WrongObjectKind, match='"USERS" is a table, not a stream'):
        CATALOG.stream("USERS")
    with pytest.raises(WrongObjectKind, match='"ORDERS" is a stream, not a table'):
        CATALOG.table("ORDERS")


def test_queries_are_found_in_any_case():
    assert CATALOG.query("csas_big_2").sink == "BIG"
    with pytest.raises(UnknownObject, match="CSAS_BIG_2"):
        CATALOG.query("CSAS_BIG_3")


def test_a_taken_name_is_refused():
    with pytest.raises(DuplicateObject, match='stream "BIG" already exists'):
        CATALOG.check_free("BIG")
    CATALOG.check_free("SMALL")


def test_what_others_read_cannot_be_dropped():
    with pytest.raises(DependentObjects) as raised:
        CATALOG.check_drop("ORDERS")
    assert raised.value.detail == "It is read by CSAS_BIG_2."
    assert raised.value.hint == "Terminate them first: TERMINATE CSAS_BIG_2;"
    CATALOG.check_drop("BIG")
