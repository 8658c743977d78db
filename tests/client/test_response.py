"""The response parser, with every kind of line split in every way."""

import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.client.errors import BadResponse, ServerError
from holdfast.client.response import ResponseParser, Row
from holdfast.errors import HoldfastError, ReadError

HEADER = b'{"queryId":"q1","columnNames":["ID","Total"],"columnTypes":["STRING","DECIMAL(20, 2)"],"notice":"old"}\n'
LINES = (
    HEADER
    + '["a\u2028b\x85c",1.10]\n'.encode()
    + b'{"tombstone":["a",null]}\n{"progress":7}\n\n["\\n",12345678901234567.89]\n{"progress":9}\n'
)


def rows_of(parser: ResponseParser) -> list[Row]:
    return list(iter(parser.take, None))


def test_rows_tombstones_and_progress_in_their_order() -> None:
    parser = ResponseParser()
    parser.feed(LINES)
    assert parser.header is not None
    assert (parser.header.query, parser.header.names, parser.header.notice) == ("q1", ("ID", "Total"), "old")
    first, gone = parser.take(), parser.take()
    assert first == ("a\u2028b\x85c", Decimal("1.10"))
    assert gone is not None
    assert gone.tombstone
    assert gone.values == ("a", None)
    assert parser.time is None, "the time is that of the rows that were taken"
    assert parser.take() == ("\n", Decimal("12345678901234567.89"))
    assert parser.time == 7
    assert parser.take() is None
    assert parser.time == 9


@given(st.lists(st.integers(0, len(LINES)), max_size=12))
def test_it_does_not_matter_how_the_bytes_are_cut(cuts: list[int]) -> None:
    whole, cut = ResponseParser(), ResponseParser()
    whole.feed(LINES)
    places = [0, *sorted(cuts), len(LINES)]
    found = []
    for start, stop in itertools.pairwise(places):
        cut.feed(LINES[start:stop])
        found += rows_of(cut)
    assert [(row, row.tombstone) for row in found] == [(row, row.tombstone) for row in rows_of(whole)]
    assert cut.time == whole.time


def test_a_last_line_needs_no_line_end() -> None:
    parser = ResponseParser()
    parser.feed(HEADER + b'["a",1]')
    assert parser.take() is None
    parser.end()
    assert parser.take() == ("a", Decimal(1))


def test_an_error_comes_after_the_rows_before_it() -> None:
    parser = ResponseParser()
    parser.feed(
        HEADER + b'["a",1.0]\n{"@type":"generic_error","error_code":40001,"message":"gone","sqlstate":"55000"}\n'
    )
    assert parser.take() == ("a", Decimal("1.0"))
    with pytest.raises(ServerError, match="gone") as caught:
        parser.take()
    assert isinstance(caught.value, ReadError)
    assert caught.value.code == 40001


@pytest.mark.parametrize("sent", [b"", b"\n\n", b"<html>", b'["a",1]\n', b'{"strange":1}\n', HEADER + b'["a",'])
def test_what_is_not_an_answer_is_said_to_be_none(sent: bytes) -> None:
    parser = ResponseParser()
    with pytest.raises(BadResponse):  # noqa: PT012
        parser.feed(sent)
        parser.end()
        rows_of(parser)


def test_values_of_a_row_by_place_and_by_name() -> None:
    row = Row(("a", 1, 2), ("ID", "Total", "TOTAL"))
    assert row[0] == row["ID"] == row["id"] == "a"
    assert (row["Total"], row["TOTAL"], row[-1], row[1:]) == (1, 2, 2, (1, 2))
    with pytest.raises(KeyError):
        row["total"]
    assert row.as_dict() == {"ID": "a", "Total": 1, "TOTAL": 2}
    id_, *_ = row
    assert id_ == "a"
    assert repr(Row(("a",), ("ID",), tombstone=True)) == "Tombstone(ID='a')"
    assert row != Row(row.values, row.names, tombstone=True)


def test_every_error_of_the_parser_is_one_of_ours() -> None:
    assert issubclass(BadResponse, HoldfastError)
    assert BadResponse("x").sqlstate == "08P01"
