"""Results as rows, Arrow, pandas and tables to be looked at."""

import pandas as pd
import pyarrow as pa

from holdfast.client.response import Header, Row
from holdfast.client.result import SHOWN_ROWS, Result
from holdfast.types import Decimal, Scalar

HEADER = Header(None, ("ID", "N", "PRICE"), (Scalar.STRING, Scalar.BIGINT, Decimal(6, 2)))


def result(*rows: tuple[object, ...], gone: int = 0) -> Result:
    made = [Row(values, HEADER.names) for values in rows]
    return Result(HEADER, [*made, *(Row((f"gone{i}", None, None), HEADER.names, tombstone=True) for i in range(gone))])


def test_a_result_is_a_sequence_of_rows() -> None:
    found = result(("a", 1, None), ("b", 2, None))
    assert len(found) == 2
    assert found[1]["n"] == 2
    assert [row[0] for row in found[:1]] == ["a"]
    assert found.as_dicts()[0] == {"ID": "a", "N": 1, "PRICE": None}


def test_arrow_has_the_types_also_when_there_are_no_rows() -> None:
    schema = pa.schema([("ID", pa.string()), ("N", pa.int64()), ("PRICE", pa.decimal128(6, 2))])
    assert result().arrow().schema == schema
    table = result(("a", 2**60, None), gone=1).arrow()
    assert table.schema == schema
    assert table.to_pylist() == [{"ID": "a", "N": 2**60, "PRICE": None}], "a tombstone is not a row"


def test_pandas_keeps_whole_numbers_whole_beside_nulls() -> None:
    frame = result(("a", 2**60 + 1, None), ("b", None, None)).pandas()
    assert frame["N"].tolist()[0] == 2**60 + 1
    assert frame["N"].isna().tolist() == [False, True]
    assert isinstance(frame["N"].dtype, pd.ArrowDtype)


def test_a_result_is_an_aligned_table() -> None:
    assert repr(result(("日本", 1, None), ("b", 1234, None))).splitlines() == [
        "ID   |    N | PRICE",
        "-----+------+------",
        "日本 |    1 |  null",
        "b    | 1234 |  null",
        "(2 rows)",
    ]


def test_a_result_in_a_notebook() -> None:
    html = result(("<b>&", 1, None), gone=1)._repr_html_()
    assert '<td style="text-align: left">&lt;b&gt;&amp;</td>' in html
    assert '<td style="text-align: right">1</td>' in html
    assert "<i>null</i>" in html
    assert "<i>&lt;TOMBSTONE&gt;</i>" in html
    many = result(*((str(i), i, None) for i in range(SHOWN_ROWS + 1)))._repr_html_()
    assert many.count("<tr>") == SHOWN_ROWS + 1
    assert f"the first {SHOWN_ROWS} shown" in many
