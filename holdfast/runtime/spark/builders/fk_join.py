"""Joins of two tables by a foreign key: a row of the left one with the right one's row that it names.

A state keeps the left rows by the key that they name, so that a change on the right finds them. What the tick does to
left rows is held as a delta with the foreign keys before (`bf`) and after (`af`).
"""

from dataclasses import dataclass

from holdfast.errors import PlanError
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.tree import ColumnRef
from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.steps import FkTableTableJoin, JoinType
from holdfast.runtime.spark.fragment import PRESENT, TS, Fragment, FragmentColumn, column
from holdfast.runtime.spark.meaning import Meaning
from holdfast.runtime.spark.relation import Side, TableRelation, held_table
from holdfast.runtime.store.port import Layout
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class FkJoin:
    """A join on its way; `right` is what changes of the right table in the tick."""

    step: FkTableTableJoin
    left: TableRelation
    right: TableRelation
    meaning: Meaning

    def __post_init__(self) -> None:
        if self.step.join_type not in (JoinType.INNER, JoinType.LEFT):
            raise PlanError(f"tables cannot be joined by a foreign key as {self.step.join_type} JOIN")
        if len(self.right.key) != 1 or self.right.window is not None or self.left.window is not None:
            raise PlanError("a foreign key can name a key of one column, and of no window")

    @property
    def foreign(self) -> SqlType:
        return self.right.key[0].type

    @property
    def layout(self) -> Layout:
        """Left rows by the key that they name, then by their own."""
        return Layout((self.foreign, *self.left.key_types), tuple(c.type for c in self.left.value), 1)

    # -- what changes --------------------------------------------------------------------------------

    def changes(self) -> Fragment:
        """The left delta with its foreign keys. A row that is not there names none."""
        keys = [f"{self._foreign(side)} AS {side.value}f" for side in Side]
        foreign = [column(f"{side.value}f", self.foreign) for side in Side]
        return Fragment(
            f"SELECT *, {', '.join(keys)} FROM ({self.left.sql})", (*held_table(self.left).columns, *foreign)
        )

    def _foreign(self, side: Side) -> str:
        text, name = given(self.step.left_join_expression), given(self.step.left_join_column_name)
        expression = parse_expression(text) if text is not None else ColumnRef(name or "")
        sql = self.meaning.spark(expression, self.left.scope(side))
        return f"IF({side.value}_present, {sql}, NULL)"

    def changed_right(self) -> Fragment:
        """The keys that change on the right: `k0`."""
        return Fragment(f"SELECT k0 FROM ({self.right.sql})", (column("k0", self.foreign),))

    def asked(self) -> Fragment:
        """The keys of the right table that matter to the tick: `k0`."""
        changes = self.changes().sql
        named = " UNION ".join(f"SELECT {side.value}f FROM ({changes})" for side in Side)
        sql = f"SELECT * FROM (SELECT k0 FROM ({self.right.sql}) UNION {named}) WHERE k0 IS NOT NULL"
        return Fragment(sql, (column("k0", self.foreign),))

    def puts(self, changes: str) -> Fragment:
        """What becomes of the state: `k0.., c0.., ts, present`."""
        keys = [f"k{i} AS k{i + 1}" for i in range(len(self.left.keys))]
        values = [f"a{i} AS c{i}" for i in range(len(self.left.value))]
        put = ["af AS k0", *keys, *values, "a_ts AS ts", "true AS present"]
        nothing = [f"CAST(NULL AS {c.spark}) AS c{i}" for i, c in enumerate(self._values())]
        gone = ["bf AS k0", *keys, *nothing, "b_ts AS ts", "false AS present"]
        sql = (
            f"SELECT {', '.join(put)} FROM {changes} WHERE a_present AND af IS NOT NULL UNION ALL "
            f"SELECT {', '.join(gone)} FROM {changes} WHERE bf IS NOT NULL AND NOT (af <=> bf)"
        )
        layout = self.layout
        columns = [column(f"k{i}", t) for i, t in enumerate(layout.key)]
        columns += [column(f"c{i}", t) for i, t in enumerate(layout.value)]
        return Fragment(sql, (*columns, TS, PRESENT))

    def _values(self) -> list[FragmentColumn]:
        return [column(f"c{i}", c.type) for i, c in enumerate(self.left.value)]

    # -- what comes of it ----------------------------------------------------------------------------

    def result(self, changes: str, named_by: str, right: TableRelation) -> TableRelation:
        """The joined delta, over the views of the left delta and of left rows whose right row changes.

        `right` has the rows of all keys that matter, before and after.
        """
        left, first = self.left, len(self.left.value)
        chosen = [f"l.{name}" for name in left.keys]
        for side, alias in ((Side.BEFORE, "x"), (Side.AFTER, "y")):
            prefix = side.value
            there = f"coalesce({alias}.{prefix}_present, false)"
            inner = self.step.join_type is JoinType.INNER
            present = f"l.{prefix}_present AND {there}" if inner else f"l.{prefix}_present"
            chosen.append(f"{present} AS {prefix}_present")
            chosen += [f"l.{prefix}{i}" for i in range(first)]
            chosen += [
                f"IF({there}, {alias}.{prefix}{i}, NULL) AS {prefix}{first + i}" for i in range(len(right.value))
            ]
            chosen.append(f"greatest(l.{prefix}_ts, {alias}.{prefix}_ts) AS {prefix}_ts")
        sql = (
            f"SELECT {', '.join(chosen)} FROM ({self._rows(changes, named_by)}) l "
            f"LEFT JOIN ({right.sql}) x ON x.k0 = l.bf LEFT JOIN ({right.sql}) y ON y.k0 = l.af"
        )
        return TableRelation(sql, left.key, left.value + right.value)

    def told_again(self, changes: str, right: TableRelation) -> str | None:
        """Deletes that change nothing and are told all the same, as Kafka Streams does: `k0.., ts`.

        The left row goes, or names another, and there was no result before nor is there one after.
        """
        if self.step.join_type is not JoinType.INNER:
            return None
        there = "NOT coalesce({0}.{1}_present, false)"
        return (
            f"SELECT {', '.join(f'l.{name}' for name in self.left.keys)}, l.a_ts AS ts FROM {changes} l "
            f"LEFT JOIN ({right.sql}) x ON x.k0 = l.bf LEFT JOIN ({right.sql}) y ON y.k0 = l.af "
            f"WHERE l.bf IS NOT NULL AND NOT (l.bf <=> l.af) AND {there.format('x', 'b')} AND {there.format('y', 'a')}"
        )

    def _rows(self, changes: str, named_by: str) -> str:
        """The left rows in question: those that change, and those that stay but whose right row changes."""
        names = self.left.keys
        same = " AND ".join(f"g.k{i + 1} <=> h.k{i}" for i in range(len(names)))
        chosen = [f"g.k{i + 1} AS k{i}" for i in range(len(names))]
        for side in Side:
            values = [f"g.c{i} AS {side.value}{i}" for i in range(len(self.left.value))]
            chosen += [f"true AS {side.value}_present", *values, f"g.ts AS {side.value}_ts"]
        chosen += [f"g.k0 AS {side.value}f" for side in Side]
        return (
            f"SELECT * FROM {changes} UNION ALL "
            f"SELECT {', '.join(chosen)} FROM {named_by} g LEFT ANTI JOIN {changes} h ON {same}"
        )
