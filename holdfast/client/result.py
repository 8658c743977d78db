"""The rows of a query: as rows, Arrow, pandas, or a table in a notebook."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from holdfast.client.display import aligned, is_right_aligned
from holdfast.client.html import html_table
from holdfast.client.response import Header, Row
from holdfast.client.values import arrow_column

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHOWN_ROWS = 100


class Result(Sequence[Row]):
    """All rows of a query."""

    def __init__(self, header: Header, rows: list[Row]) -> None:
        self.header = header
        self.rows = rows

    @property
    def names(self) -> tuple[str, ...]:
        return self.header.names

    @property
    def notice(self) -> str | None:
        """A notice of the server about the result, such as that it is not current."""
        return self.header.notice

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def as_dicts(self) -> list[dict[str, Any]]:
        return [row.as_dict() for row in self.rows]

    def arrow(self) -> "pa.Table":
        """The rows as an Arrow table; tombstones of a push query are left out."""
        import pyarrow as pa

        rows = [row.values for row in self.rows if not row.tombstone]
        columns = zip(*rows, strict=True) if rows else ([] for _ in self.names)
        arrays = [arrow_column(list(c), type_) for c, type_ in zip(columns, self.header.types, strict=True)]
        return pa.Table.from_arrays(arrays, names=list(self.names))

    def pandas(self) -> "pd.DataFrame":
        """The rows as a data frame whose columns keep their types and their nulls (`pandas.ArrowDtype`)."""
        try:
            import pandas as pd
        except ModuleNotFoundError as cause:
            raise ModuleNotFoundError(
                "pandas is not installed; install it with: pip install 'holdfast[pandas]'"
            ) from cause
        frame: pd.DataFrame = self.arrow().to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    def __repr__(self) -> str:
        shown = [row.values for row in self.rows[:SHOWN_ROWS]]
        return "\n".join([*aligned(self.names, shown, self._right), row_count(len(self.rows), SHOWN_ROWS)])

    def _repr_html_(self) -> str:
        rows = self.rows[:SHOWN_ROWS]
        tombstones = [row.tombstone for row in rows]
        return html_table(
            self.names,
            [row.values for row in rows],
            right=self._right,
            tombstones=tombstones,
            caption=row_count(len(self.rows), SHOWN_ROWS),
        )

    @property
    def _right(self) -> list[bool]:
        return [is_right_aligned(type_) for type_ in self.header.types]


def row_count(count: int, shown: int) -> str:
    rows = f"{count:,} {'row' if count == 1 else 'rows'}"
    return f"({rows})" if count <= shown else f"({rows}, the first {shown} shown)"
