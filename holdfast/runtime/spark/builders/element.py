"""Windows that are kept as elements of a state until they close: sessions, and those of EMIT FINAL.

An element has the key `k0.., clock, start, end` and the aggregation's state, behind which are its ROWTIME and the
offset of its latest record. Its `ts` is the window's end, by which the store finds what closes.
"""

from dataclasses import dataclass

from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.spark.builders.aggregate import Aggregation
from holdfast.runtime.spark.fragment import BAD, LATE, TS, Fragment, FragmentColumn, column
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import Array, Scalar

GREATEST = ("greatest(s{0}, p{0})", "CAST(NULL AS BIGINT)")
ABSORBED = (column("o_start", Array(Scalar.BIGINT)), column("o_end", Array(Scalar.BIGINT)))
"""The starts and ends of the elements that become part of a row's window."""


@dataclass(frozen=True, slots=True)
class Elements:
    """An aggregation whose windows are elements."""

    aggregation: Aggregation

    @property
    def width(self) -> int:
        """How many columns the key has before the clock."""
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
        first, own = len(self.aggregation.layout.value), self.aggregation.merge
        merged, initial = GREATEST
        return Merge(
            initial=(*own.initial, initial, initial),
            merged=(*own.merged, *(merged.format(first + i) for i in range(2))),
        )

    @property
    def partials(self) -> list[str]:
        """Spark aggregates over the rows of a window."""
        own = [sql for part in self.aggregation.parts for sql in part.partial]
        return [f"{sql} AS p{i}" for i, sql in enumerate([*own, "max(ts)", "max(off)"])]

    @property
    def columns(self) -> tuple[FragmentColumn, ...]:
        layout = self.layout
        keys = [column(f"k{i}", type_) for i, type_ in enumerate(layout.key)]
        return (*keys, *(column(f"p{i}", type_) for i, type_ in enumerate(layout.value)), TS, *ABSORBED, LATE, BAD)

    def fragment(self) -> Fragment:
        """The partials of time windows, each of which absorbs the element that it has already."""
        n = self.width
        keys = [f"k{i}" for i in range(n)]
        start, end = f"k{n}", f"k{n + 1}"
        chosen = [*keys, f"clk AS k{n}", f"{start} AS k{n + 1}", f"{end} AS k{n + 2}", *self.partials]
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
