"""Joins of a stream with a table, and of tables, by key.

Inside a join a table is not just what changed in the tick: it is the row of every key that the join asks for, before
and after, as a delta like any other.
"""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.errors import PlanError
from holdfast.runtime.plan.presence import Maybe, given
from holdfast.runtime.plan.steps import JoinType, StreamTableJoin, TableTableJoin
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.spark.fragment import PRESENT, TS, Fragment, column
from holdfast.runtime.spark.relation import Side, StreamRelation, TableRelation, physical_key
from holdfast.types import Column

PRESENT_WHEN = {
    JoinType.INNER: "l.{0}_present AND r.{0}_present",
    JoinType.LEFT: "l.{0}_present",
    JoinType.RIGHT: "r.{0}_present",
    JoinType.OUTER: "l.{0}_present OR r.{0}_present",
}


def completed(
    key: Sequence[Column],
    value: Sequence[Column],
    window: WindowInfo | None,
    *,
    keys: str,
    found: str,
    changed: str,
) -> TableRelation:
    """A table's rows of some keys: as `changed` in the tick has them, else as they were `found` before it."""
    names = [f"k{i}" for i in range(len(physical_key(key, window)))]
    chosen = [f"h.{name}" for name in names]
    for side in Side:
        prefix = side.value
        chosen.append(f"coalesce(d.{prefix}_present, f.ts IS NOT NULL) AS {prefix}_present")
        chosen += [f"IF(d.a_present IS NULL, f.c{i}, d.{prefix}{i}) AS {prefix}{i}" for i in range(len(value))]
        chosen.append(f"IF(d.a_present IS NULL, f.ts, d.{prefix}_ts) AS {prefix}_ts")
    sql = (
        f"SELECT {', '.join(chosen)} FROM (SELECT DISTINCT {', '.join(names)} FROM {keys}) h "
        f"LEFT JOIN {changed} d ON {_same(names, 'h', 'd')} LEFT JOIN {found} f ON {_same(names, 'h', 'f')}"
    )
    return TableRelation(sql, tuple(key), tuple(value), window)


def keys_of(tables: Sequence[TableRelation]) -> Fragment:
    """The keys that changed in any of some tables, each once."""
    first = tables[0]
    if any(table.key_types != first.key_types for table in tables):
        raise PlanError("a join's tables have keys of different types")
    keys = ", ".join(first.keys)
    sql = " UNION ".join(f"SELECT {keys} FROM ({table.sql})" for table in tables)
    return Fragment(sql, tuple(column(f"k{i}", type_) for i, type_ in enumerate(first.key_types)))


def changed_rows(source: TableRelation, rows: str, before: str) -> TableRelation:
    """The delta of a table, by the last rows of its keys in the tick and those that were there before it."""
    same = _same(source.keys, "h", "f")
    chosen = [f"h.{name}" for name in source.keys]
    chosen += ["f.ts IS NOT NULL AS b_present", *(f"f.c{i} AS b{i}" for i in range(len(source.value))), "f.ts AS b_ts"]
    after = (f"IF(h.present, h.c{i}, NULL) AS a{i}" for i in range(len(source.value)))
    chosen += ["h.present AS a_present", *after, "h.ts AS a_ts"]
    joined = f"{rows} h LEFT JOIN {before} f ON {same}"
    return replace(source, sql=f"SELECT {', '.join(chosen)} FROM {joined} WHERE h.present OR f.ts IS NOT NULL")


def kept_rows(source: TableRelation, changed: str) -> Fragment:
    """The rows of a table that a state keeps, by what changes: `k0.., c0.., ts, present`."""
    values = [f"a{i} AS c{i}" for i in range(len(source.value))]
    chosen = ", ".join([*source.keys, *values, "coalesce(a_ts, b_ts) AS ts", "a_present AS present"])
    columns = [column(f"k{i}", t) for i, t in enumerate(source.key_types)]
    columns += [column(f"c{i}", c.type) for i, c in enumerate(source.value)]
    return Fragment(f"SELECT {chosen} FROM {changed} WHERE a_present OR b_present", (*columns, TS, PRESENT))


def build_stream_table_join(step: StreamTableJoin, left: StreamRelation, right: TableRelation) -> StreamRelation:
    """Each row with the table's row of its key, as the tick leaves it."""
    if step.join_type not in (JoinType.INNER, JoinType.LEFT):
        raise PlanError(f"a stream and a table cannot be joined by {step.join_type} JOIN")
    first = len(left.value)
    values = [f"r.a{i} AS c{first + i}" for i in range(len(right.value))]
    chosen = [f"l.{name}" for name in (*left.keys, *left.values)] + [*values, *(f"l.{name}" for name in left.rest)]
    kind = "JOIN" if step.join_type is JoinType.INNER else "LEFT JOIN"
    sql = (
        f"SELECT {', '.join(chosen)} FROM (SELECT * FROM ({left.sql}) WHERE present) l {kind} "
        f"(SELECT * FROM ({right.sql}) WHERE a_present) r ON {_same(left.keys, 'l', 'r')}"
    )
    key = named_key(left.key, step.key_column_name)
    return StreamRelation(sql, key, left.value + right.value, left.headers, left.window)


def build_table_table_join(step: TableTableJoin, left: TableRelation, right: TableRelation) -> TableRelation:
    """Both sides have a row for every key in question."""
    first = len(left.value)
    chosen = [f"l.{name}" for name in left.keys]
    for side in Side:
        prefix = side.value
        chosen.append(f"{PRESENT_WHEN[step.join_type].format(prefix)} AS {prefix}_present")
        for table, alias, start in ((left, "l", 0), (right, "r", first)):
            chosen += [
                f"IF({alias}.{prefix}_present, {alias}.{prefix}{i}, NULL) AS {prefix}{start + i}"
                for i in range(len(table.value))
            ]
        chosen.append(f"greatest(l.{prefix}_ts, r.{prefix}_ts) AS {prefix}_ts")
    sql = f"SELECT {', '.join(chosen)} FROM ({left.sql}) l JOIN ({right.sql}) r ON {_same(left.keys, 'l', 'r')}"
    key = named_key(left.key, step.key_column_name)
    return TableRelation(sql, key, left.value + right.value, left.window)


def named_key(key: Sequence[Column], name: Maybe[str]) -> tuple[Column, ...]:
    given_name = given(name)
    return tuple(key) if given_name is None or len(key) != 1 else (replace(key[0], name=given_name),)


def _same(names: Sequence[str], left: str, right: str) -> str:
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in names)
