"""Windows stored as elements of a state until they close: sessions, and windows of EMIT FINAL.

An element has the key `k0.., clock, start, end`. Its value is the aggregation's state, followed by its ROWTIME and the
offset of its latest record. Its `ts` is the window's end, by which the store finds the windows that close.
"""

from dataclasses import dataclass

from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import BAD, LATE, TS, Fragment, FragmentColumn, column, key_columns, partial_columns
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.spark.builders.aggregate import AggregateMerge
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Array, Scalar

GREATEST = ("greatest(s{0}, p{0})", "CAST(NULL AS BIGINT)")
ABSORBED = (column("o_start", Array(Scalar.BIGINT)), column("o_end", Array(Scalar.BIGINT)))
"""The starts and ends of the elements that a row's window absorbs."""


@dataclass(frozen=True, slots=True)
class Elements:
    """An aggregation whose windows are elements."""

    aggregation: AggregateMerge

    @property
    def width(self) -> int:
        """The number of key columns before the clock."""
        return len(self.aggregation.source.key)

    @property
    def window(self) -> WindowInfo:
        window = self.aggregation.source.window
        assert window is not None
        return window

    @property
    def layout(self) -> Layout:
        key, *bounds = self.aggregation.layout.key[: self.width], *self.aggregation.layout.key[self.width :]
        value = (*self.aggregation.layout.value, Scalar.BIGINT, Scalar.BIGINT)
        return Layout((*key, Scalar.INTEGER, *bounds), value, group=self.width + 1)

    @property
    def merge(self) -> Merge:
        first, aggregates = len(self.aggregation.layout.value), self.aggregation.merge
        merged, initial = GREATEST
        return Merge(
            initial=(*aggregates.initial, initial, initial),
            merged=(*aggregates.merged, *(merged.format(first + i) for i in range(2))),
        )

    @property
    def partials(self) -> list[str]:
        """Spark aggregates over the rows of a window."""
        aggregates = [sql for part in self.aggregation.parts for sql in part.partial]
        return [f"{sql} AS {col.partial(i)}" for i, sql in enumerate([*aggregates, "max(ts)", "max(off)"])]

    @property
    def columns(self) -> tuple[FragmentColumn, ...]:
        layout = self.layout
        keys = key_columns(layout.key)
        return (*keys, *partial_columns(layout.value), TS, *ABSORBED, LATE, BAD)

    def fragment(self) -> Fragment:
        """The partials of time windows, each of which absorbs its stored element."""
        n = self.width
        keys = col.keys(n)
        start, end = col.key(n), col.key(n + 1)
        chosen = [
            *keys,
            f"clk AS {col.key(n)}",
            f"{start} AS {col.key(n + 1)}",
            f"{end} AS {col.key(n + 2)}",
            *self.partials,
        ]
        chosen += [
            f"{end} AS ts",
            f"array({start}) AS o_start",
            f"array({end}) AS o_end",
            "0L AS late",
            "bad",
        ]
        grouped = ", ".join([*keys, "clk", start, end, "bad"])
        sql = f"SELECT {', '.join(chosen)} FROM ({self.aggregation.source.sql}) GROUP BY {grouped}"
        return Fragment(sql, self.columns)
