"""Joins of a stream with a table, and of tables, by key.

Inside a join, a table is not only its changes in the tick: it is the rows of all keys that the join needs, before and
after the tick, as a delta.
"""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import PlanError
from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import PRESENT, TS, Fragment, key_columns, value_columns
from holdfast.runtime.physical_columns import AFTER, BEFORE, Side
from holdfast.runtime.plan.optional import Maybe, value_of
from holdfast.runtime.plan.steps import JoinType, StreamTableJoin, TableTableJoin
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.spark.relation import StreamRelation, TableRelation, physical_key
from holdfast.types import Column

PRESENT_WHEN = {
    JoinType.INNER: "l.{0} AND r.{0}",
    JoinType.LEFT: "l.{0}",
    JoinType.RIGHT: "r.{0}",
    JoinType.OUTER: "l.{0} OR r.{0}",
}


def rows_of_keys(
    key: Sequence[Column],
    value: Sequence[Column],
    window: WindowInfo | None,
    *,
    keys: str,
    found: str,
    changed: str,
) -> TableRelation:
    """A table's rows of the view `keys`: as `changed` in the tick, otherwise as `found` before it."""
    names = col.keys(len(physical_key(key, window)))
    chosen = [f"h.{name}" for name in names]
    for side in Side:
        chosen.append(f"coalesce(d.{side.present}, f.ts IS NOT NULL) AS {side.present}")
        chosen += [
            f"IF(d.a_present IS NULL, f.{col.value(i)}, d.{side.column(i)}) AS {side.column(i)}"
            for i in range(len(value))
        ]
        chosen.append(f"IF(d.a_present IS NULL, f.ts, d.{side.row_time}) AS {side.row_time}")
    sql = (
        f"SELECT {', '.join(chosen)} FROM (SELECT DISTINCT {', '.join(names)} FROM {keys}) h "
        f"LEFT JOIN {changed} d ON {_same(names, 'h', 'd')} LEFT JOIN {found} f ON {_same(names, 'h', 'f')}"
    )
    return TableRelation(sql, tuple(key), tuple(value), window)


def changed_keys(tables: Sequence[TableRelation]) -> Fragment:
    """The keys that changed in any of the tables, without duplicates."""
    first = tables[0]
    if any(table.key_types != first.key_types for table in tables):
        raise PlanError("the tables of a join have keys of different types")
    keys = ", ".join(first.keys)
    sql = " UNION ".join(f"SELECT {keys} FROM ({table.sql})" for table in tables)
    return Fragment(sql, tuple(key_columns(first.key_types)))


def changed_rows(source: TableRelation, rows: str, before: str) -> TableRelation:
    """The delta of a table, from the last row of each key in the tick and the rows before the tick."""
    same = _same(source.keys, "h", "f")
    chosen = [f"h.{name}" for name in source.keys]
    chosen += [
        "f.ts IS NOT NULL AS b_present",
        *(f"f.{col.value(i)} AS {BEFORE.column(i)}" for i in range(len(source.value))),
        "f.ts AS b_ts",
    ]
    after = (f"IF(h.present, h.{col.value(i)}, NULL) AS {AFTER.column(i)}" for i in range(len(source.value)))
    chosen += ["h.present AS a_present", *after, "h.ts AS a_ts"]
    joined = f"{rows} h LEFT JOIN {before} f ON {same}"
    return replace(source, sql=f"SELECT {', '.join(chosen)} FROM {joined} WHERE h.present OR f.ts IS NOT NULL")


def stored_rows(source: TableRelation, changed: str) -> Fragment:
    """The changes of a table as rows of a state: `k0.., c0.., ts, present`."""
    values = [f"{AFTER.column(i)} AS {col.value(i)}" for i in range(len(source.value))]
    chosen = ", ".join([*source.keys, *values, "coalesce(a_ts, b_ts) AS ts", "a_present AS present"])
    columns = key_columns(source.key_types)
    columns += value_columns(c.type for c in source.value)
    return Fragment(f"SELECT {chosen} FROM {changed} WHERE a_present OR b_present", (*columns, TS, PRESENT))


def build_stream_table_join(step: StreamTableJoin, left: StreamRelation, right: TableRelation) -> StreamRelation:
    """Each row with the table's row of its key after the tick."""
    if step.join_type not in (JoinType.INNER, JoinType.LEFT):
        raise PlanError(f"a stream and a table cannot be joined with {step.join_type} JOIN")
    first = len(left.value)
    values = [f"r.{AFTER.column(i)} AS {col.value(first + i)}" for i in range(len(right.value))]
    chosen = [f"l.{name}" for name in (*left.keys, *left.values)] + [*values, *(f"l.{name}" for name in left.rest)]
    kind = "JOIN" if step.join_type is JoinType.INNER else "LEFT JOIN"
    sql = (
        f"SELECT {', '.join(chosen)} FROM (SELECT * FROM ({left.sql}) WHERE present) l {kind} "
        f"(SELECT * FROM ({right.sql}) WHERE a_present) r ON {_same(left.keys, 'l', 'r')}"
    )
    key = named_key(left.key, step.key_column_name)
    return StreamRelation(sql, key, left.value + right.value, left.headers, left.window)


def build_table_table_join(step: TableTableJoin, left: TableRelation, right: TableRelation) -> TableRelation:
    """Both tables must have a row, present or not, for every key to join."""
    first = len(left.value)
    chosen = [f"l.{name}" for name in left.keys]
    for side in Side:
        chosen.append(f"{PRESENT_WHEN[step.join_type].format(side.present)} AS {side.present}")
        for table, alias, start in ((left, "l", 0), (right, "r", first)):
            chosen += [
                f"IF({alias}.{side.present}, {alias}.{side.column(i)}, NULL) AS {side.column(start + i)}"
                for i in range(len(table.value))
            ]
        chosen.append(f"greatest(l.{side.row_time}, r.{side.row_time}) AS {side.row_time}")
    sql = f"SELECT {', '.join(chosen)} FROM ({left.sql}) l JOIN ({right.sql}) r ON {_same(left.keys, 'l', 'r')}"
    key = named_key(left.key, step.key_column_name)
    return TableRelation(sql, key, left.value + right.value, left.window)


def named_key(key: Sequence[Column], name: Maybe[str]) -> tuple[Column, ...]:
    new_name = value_of(name)
    return tuple(key) if new_name is None or len(key) != 1 else (replace(key[0], name=new_name),)


def _same(names: Sequence[str], left: str, right: str) -> str:
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in names)
