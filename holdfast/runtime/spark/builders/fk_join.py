"""Joins of two tables by a foreign key: each row of the left table with the row of the right table that it references.

A state stores the left rows by foreign key, so that a change on the right finds them. The changes of left rows in a
tick are saved as a delta with the foreign keys before (`bf`) and after (`af`).
"""

from dataclasses import dataclass

from holdfast.errors import PlanError
from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.tree import ColumnRef
from holdfast.runtime.fragment import PRESENT, TS, Fragment, FragmentColumn, column, key_columns, value_columns
from holdfast.runtime.physical_columns import AFTER, Side
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import FkTableTableJoin, JoinType
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import TableRelation, saved_table
from holdfast.runtime.store.port import Layout
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class FkJoin:
    """A join while it is built; `right` are the changes of the right table in the tick."""

    step: FkTableTableJoin
    left: TableRelation
    right: TableRelation
    compiler: ExpressionCompiler

    def __post_init__(self) -> None:
        if self.step.join_type not in (JoinType.INNER, JoinType.LEFT):
            raise PlanError(f"tables cannot be joined by a foreign key with {self.step.join_type} JOIN")
        if len(self.right.key) != 1 or self.right.window is not None:
            raise PlanError("a foreign-key join needs a right table without windows, with a single key column")

    @property
    def foreign(self) -> SqlType:
        return self.right.key[0].type

    @property
    def layout(self) -> Layout:
        """Left rows by foreign key, then by their own key."""
        return Layout((self.foreign, *self.left.key_types), tuple(c.type for c in self.left.value), 1)

    # -- changes -------------------------------------------------------------------------------------

    def changes(self) -> Fragment:
        """The left delta with its foreign keys; those of an absent row are NULL."""
        keys = [f"{self._foreign(side)} AS {side.value}f" for side in Side]
        foreign = [column(f"{side.value}f", self.foreign) for side in Side]
        return Fragment(
            f"SELECT *, {', '.join(keys)} FROM ({self.left.sql})", (*saved_table(self.left).columns, *foreign)
        )

    def _foreign(self, side: Side) -> str:
        text, name = value_of(self.step.left_join_expression), value_of(self.step.left_join_column_name)
        expression = parse_expression(text) if text is not None else ColumnRef(name or "")
        sql = self.compiler.spark(expression, self.left.scope(side))
        return f"IF({side.present}, {sql}, NULL)"

    def changed_right(self) -> Fragment:
        """The keys whose right rows change: `k0`."""
        return Fragment(f"SELECT k0 FROM ({self.right.sql})", (column(col.key(0), self.foreign),))

    def referenced(self) -> Fragment:
        """The keys of the right table that change, or that changed left rows reference: `k0`."""
        changes = self.changes().sql
        foreign = " UNION ".join(f"SELECT {side.value}f FROM ({changes})" for side in Side)
        sql = f"SELECT * FROM (SELECT k0 FROM ({self.right.sql}) UNION {foreign}) WHERE k0 IS NOT NULL"
        return Fragment(sql, (column(col.key(0), self.foreign),))

    def puts(self, changes: str) -> Fragment:
        """The changes of the state: `k0.., c0.., ts, present`."""
        keys = [f"{col.key(i)} AS {col.key(i + 1)}" for i in range(len(self.left.keys))]
        values = [f"{AFTER.column(i)} AS {col.value(i)}" for i in range(len(self.left.value))]
        put = ["af AS k0", *keys, *values, "a_ts AS ts", "true AS present"]
        nulls = [f"CAST(NULL AS {c.spark}) AS {col.value(i)}" for i, c in enumerate(self._values())]
        deleted = ["bf AS k0", *keys, *nulls, "b_ts AS ts", "false AS present"]
        sql = (
            f"SELECT {', '.join(put)} FROM {changes} WHERE a_present AND af IS NOT NULL UNION ALL "
            f"SELECT {', '.join(deleted)} FROM {changes} WHERE bf IS NOT NULL AND NOT (af <=> bf)"
        )
        layout = self.layout
        columns = key_columns(layout.key)
        columns += value_columns(layout.value)
        return Fragment(sql, (*columns, TS, PRESENT))

    def _values(self) -> list[FragmentColumn]:
        return value_columns(c.type for c in self.left.value)

    # -- results -------------------------------------------------------------------------------------

    def result(self, changes: str, referring: str, right: TableRelation) -> TableRelation:
        """The joined delta, over the views of the left delta and of the left rows whose right row changes.

        `right` has the rows of all `referenced` keys, before and after the tick.
        """
        left, first = self.left, len(self.left.value)
        chosen = [f"l.{name}" for name in left.keys]
        for side, alias in ((Side.BEFORE, "x"), (Side.AFTER, "y")):
            matched = f"coalesce({alias}.{side.present}, false)"
            inner = self.step.join_type is JoinType.INNER
            present = f"l.{side.present} AND {matched}" if inner else f"l.{side.present}"
            chosen.append(f"{present} AS {side.present}")
            chosen += [f"l.{side.column(i)}" for i in range(first)]
            chosen += [
                f"IF({matched}, {alias}.{side.column(i)}, NULL) AS {side.column(first + i)}"
                for i in range(len(right.value))
            ]
            chosen.append(f"greatest(l.{side.row_time}, {alias}.{side.row_time}) AS {side.row_time}")
        sql = (
            f"SELECT {', '.join(chosen)} FROM ({self._rows(changes, referring)}) l "
            f"LEFT JOIN ({right.sql}) x ON x.k0 = l.bf LEFT JOIN ({right.sql}) y ON y.k0 = l.af"
        )
        return TableRelation(sql, left.key, left.value + right.value, left.window)

    def repeated_deletes(self, changes: str, right: TableRelation) -> str | None:
        """Deletes that change nothing but are emitted, as Kafka Streams does: `k0.., ts`.

        The left row is deleted or changes its foreign key, and there is no result before or after.
        """
        if self.step.join_type is not JoinType.INNER:
            return None
        absent = "NOT coalesce({0}.{1}_present, false)"
        return (
            f"SELECT {', '.join(f'l.{name}' for name in self.left.keys)}, l.a_ts AS ts FROM {changes} l "
            f"LEFT JOIN ({right.sql}) x ON x.k0 = l.bf LEFT JOIN ({right.sql}) y ON y.k0 = l.af "
            f"WHERE l.bf IS NOT NULL AND NOT (l.bf <=> l.af) "
            f"AND {absent.format('x', 'b')} AND {absent.format('y', 'a')}"
        )

    def _rows(self, changes: str, referring: str) -> str:
        """The left rows to join: those that change, and unchanged ones whose right row changes."""
        names = self.left.keys
        same = " AND ".join(f"g.{col.key(i + 1)} <=> h.{col.key(i)}" for i in range(len(names)))
        chosen = [f"g.{col.key(i + 1)} AS {col.key(i)}" for i in range(len(names))]
        for side in Side:
            values = [f"g.{col.value(i)} AS {side.column(i)}" for i in range(len(self.left.value))]
            chosen += [f"true AS {side.present}", *values, f"g.ts AS {side.row_time}"]
        chosen += [f"g.k0 AS {side.value}f" for side in Side]
        return (
            f"SELECT * FROM {changes} UNION ALL "
            f"SELECT {', '.join(chosen)} FROM {referring} g LEFT ANTI JOIN {changes} h ON {same}"
        )
