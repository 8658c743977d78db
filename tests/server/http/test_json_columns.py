"""Rows written by columns are the rows written one by one."""

import datetime as dt
import decimal
import json
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from holdfast.runtime.expressions.physical import arrow_type
from holdfast.server.http import json_columns as texts
from holdfast.server.http.json_columns import Wrap, wrapped
from holdfast.serving.results import ResultColumn
from holdfast.types import Array, Decimal, Map, Scalar, SqlType

NUMBER = Decimal(20, 10)
VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    Scalar.BOOLEAN: st.booleans(),
    Scalar.INTEGER: st.integers(-(2**31), 2**31 - 1),
    Scalar.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Scalar.DOUBLE: st.floats() | st.sampled_from([0.0, -0.0, 10.0, 1e16, 1e22, 5e-324]),
    Scalar.STRING: st.text(st.characters(exclude_categories=["Cs"])) | st.text(st.characters(max_codepoint=0x7F)),
    Scalar.BYTES: st.binary(max_size=5),
    Scalar.DATE: st.dates(),
    Scalar.TIMESTAMP: st.datetimes(dt.datetime(1600, 1, 1)).map(lambda t: t.replace(microsecond=0)),
    NUMBER: st.decimals(-(10**9), 10**9, places=10),
    Array(Scalar.STRING): st.lists(st.text(max_size=3) | st.none(), max_size=3),
    Map(Scalar.STRING, Scalar.DOUBLE): st.lists(st.tuples(st.text(max_size=3), st.floats()), max_size=2),
}
ROW, GONE = Wrap("[", "]\n"), Wrap('{"tombstone":[', "]}\n")


@pytest.mark.parametrize("type_", VALUES, ids=str)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_column_of_many_rows_is_written_as_its_rows_are(type_: SqlType, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[type_] | st.none(), min_size=1, max_size=12))
    gone = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    numbers = list(range(len(values)))
    rows = pa.table({"r0": pa.array(values, arrow_type(type_)), "r1": numbers, "tombstone": gone})
    columns = [ResultColumn("A", type_), ResultColumn("B", Scalar.BIGINT)]
    few, many = rows, pa.concat_tables([rows] * (texts.FEW // len(values) + 1))
    written = wrapped(few, columns, ROW, GONE).splitlines(), wrapped(many, columns, ROW, GONE).splitlines()
    one, other = ([json.loads(line, parse_float=decimal.Decimal) for line in lines] for lines in written)
    assert many.num_rows > texts.FEW >= few.num_rows
    assert other == one * (len(other) // len(one))
    assert [isinstance(line, dict) for line in one] == gone


def test_whole_doubles_stay_doubles_and_parts_of_a_table_are_written_alone() -> None:
    rows = pa.table({"r0": pa.array([float(n) for n in range(300)]), "r1": [f'"{n}"\n' for n in range(300)]})
    columns = [ResultColumn("A", Scalar.DOUBLE), ResultColumn("B", Scalar.STRING)]
    written = wrapped(rows.slice(100, 100), columns, ROW, ROW).decode()
    assert written.splitlines()[:2] == [r'[100.0,"\"100\"\n"]', r'[101.0,"\"101\"\n"]']
    assert len(written.splitlines()) == 100
