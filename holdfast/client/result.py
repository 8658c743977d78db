"""The rows of an answered query, as rows, Arrow or pandas, and as a table in a notebook."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from holdfast.client.answer import Header, Row
from holdfast.client.html import html_table
from holdfast.client.shown import aligned, is_right
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
        """What the server wants to be known of the answer, such as that it is not of the present."""
        return self.header.notice

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def as_dicts(self) -> list[dict[str, Any]]:
        return [row.as_dict() for row in self.rows]

    def arrow(self) -> "pa.Table":
        """The rows as an Arrow table; of a push query the tombstones are left out."""
        import pyarrow as pa

        kept = [row.values for row in self.rows if not row.tombstone]
        columns = zip(*kept, strict=True) if kept else ([] for _ in self.names)
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
        return "\n".join([*aligned(self.names, shown, self._right), counted(len(self.rows), SHOWN_ROWS)])

    def _repr_html_(self) -> str:
        rows = self.rows[:SHOWN_ROWS]
        gone = [row.tombstone for row in rows]
        return html_table(
            self.names,
            [row.values for row in rows],
            right=self._right,
            gone=gone,
            caption=counted(len(self.rows), SHOWN_ROWS),
        )

    @property
    def _right(self) -> list[bool]:
        return [is_right(type_) for type_ in self.header.types]


def counted(count: int, shown: int) -> str:
    rows = f"{count:,} {'row' if count == 1 else 'rows'}"
    return f"({rows})" if count <= shown else f"({rows}, the first {shown} shown)"
