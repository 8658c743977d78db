"""Compiles a query that reads into one SELECT of an engine's SQL, over relations of the store.

Only relations of the catalog and declared functions get into the text; columns have their physical names, so that no
name of a user meets an engine.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

from holdfast.catalog.objects import Table
from holdfast.errors import BindError, NotSupported, TypeMismatch
from holdfast.runtime.expressions.coercion import common_type
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.tree import BooleanLiteral, ColumnRef, Expression
from holdfast.runtime.plan.steps import JoinType
from holdfast.sql import statements as sql
from holdfast.sql.read_blocks import Block, CommonBlock, Sort, cast_columns, listed, tail
from holdfast.sql.read_expressions import Expressions
from holdfast.sql.read_names import ReadColumn, ReadSource, Sight, table_columns
from holdfast.sql.read_select import SelectList, output_number
from holdfast.sql.walk import column_refs, conjuncts, rewrite, walk
from holdfast.types import Column

JOINS = {
    JoinType.INNER: "INNER JOIN",
    JoinType.LEFT: "LEFT JOIN",
    JoinType.RIGHT: "RIGHT JOIN",
    JoinType.OUTER: "FULL JOIN",
}
CommonBlocks = Mapping[str, CommonBlock]
Found = Table | sql.Select
"""What a relation's name stands for: a table, or the query of a view."""


class ReadCompiler:
    """One compilation. `find` gives what a relation of a FROM is; `relations` are the tables that were found.

    `conditions` are what all rows of a relation must satisfy that the query has any use for.
    """

    def __init__(self, find: Callable[[sql.Relation], Found], dialect: Dialect) -> None:
        self._find, self._dialect = find, dialect
        self.relations: dict[str, Table] = {}
        self.conditions: dict[str, tuple[Expression, ...]] = {}
        self._numbers = count()
        self._inside = False

    def query(self, select: sql.Select, outer: Sight | None = None, common: CommonBlocks | None = None) -> Block:
        """A whole query, with its WITH clause, its unions and what is said of all of it."""
        if select.as_of is not None and self._inside:
            raise BindError(
                "AS OF is said of a whole query, at its end",
                detail="All that a query reads is read at one time.",
                position=select.as_of.position,
            )
        self._inside = True
        _refuse(select)
        common, with_ = self._common_tables(select, common or {})
        block = self._united(select, outer, common) if select.unions else self._select(select, outer, common)
        return Block(f"{with_}{block.sql}", block.columns)

    def _place(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"

    def _common_tables(self, select: sql.Select, common: CommonBlocks) -> tuple[CommonBlocks, str]:
        known = dict(common)
        texts = []
        names: set[str] = set()
        for table in select.tables:
            if table.name.text in names:
                raise BindError(f'WITH has "{table.name.text}" twice', position=table.name.position)
            names.add(table.name.text)
            block = self.query(table.query, None, known)
            place = self._place("w")
            known[table.name.text] = CommonBlock(place, _renamed(block.columns, table))
            texts.append(f"{place} AS ({block.sql})")
        return known, f"WITH {', '.join(texts)} " if texts else ""

    # ---- one SELECT

    def _select(self, select: sql.Select, outer: Sight | None, common: CommonBlocks) -> Block:
        rows, from_ = self._from(select, outer, common)
        where = f" WHERE {rows.condition(select.where, clause='WHERE')}" if select.where is not None else ""
        self._note_conditions(select, rows.sight)
        chosen = SelectList(select, rows, self._dialect)
        # Asked for before the FROM is written: sorting and HAVING may need aggregates of their own.
        having, order = chosen.having(), chosen.order()
        source = chosen.grouped(f"{from_}{where}") if chosen.grouping is not None else f"{from_}{where}"
        if having:
            source += f" WHERE {having}"
        items = ", ".join(f"{text} AS r{i}" for i, text in enumerate(chosen.texts))
        if not select.distinct:
            return Block(f"SELECT {items} FROM {source}{tail(order, select.limit, select.offset)}", chosen.columns)
        place = self._place("d")
        core = f"(SELECT DISTINCT {items} FROM {source}) AS {place}"
        sorted_ = [Sort(f"{place}.{sort.text}", sort.descending, sort.nulls_first) for sort in order]
        ending = tail(sorted_, select.limit, select.offset)
        return Block(f"SELECT {listed(len(chosen.columns), place)} FROM {core}{ending}", chosen.columns)

    # ---- unions

    def _united(self, select: sql.Select, outer: Sight | None, common: CommonBlocks) -> Block:
        first = self._select(_alone(select), outer, common)
        blocks = [first, *(self.query(part.query, outer, common) for part in select.unions)]
        types = [column.type for column in first.columns]
        for part, block in zip(select.unions, blocks[1:], strict=True):
            if len(block.columns) != len(types):
                raise BindError(
                    f"each SELECT of a UNION must give as many columns: {len(types)}, not {len(block.columns)}",
                    position=part.query.position,
                )
            for i, column in enumerate(block.columns):
                merged = common_type(types[i], column.type)
                if merged is None:
                    raise TypeMismatch(
                        f"UNION cannot match {types[i]} with {column.type}",
                        detail=f'They are the types of column {i + 1}, "{first.columns[i].name}".',
                        position=part.query.position,
                    )
                types[i] = merged
        texts = [cast_columns(block, types, self._dialect, self._place("u")) for block in blocks]
        united = texts[0]
        for part, text in zip(select.unions, texts[1:], strict=True):
            united = f"{united} UNION {'ALL ' if part.all else ''}{text}"
        columns = tuple(Column(c.name, t) for c, t in zip(first.columns, types, strict=True))
        place = self._place("s")
        order = [_output_sort(item, columns, place) for item in select.order_by]
        ending = tail(order, select.limit, select.offset)
        return Block(f"SELECT {listed(len(columns), place)} FROM ({united}) AS {place}{ending}", columns)

    # ---- FROM

    def _from(self, select: sql.Select, outer: Sight | None, common: CommonBlocks) -> tuple[Expressions, str]:
        sight, text = Sight((), outer), ""
        rows = self._expressions(sight, common)
        for join in (None, *select.joins):
            written = select.relation if join is None else join.relation
            if any(source.alias == written.alias != "" for source in sight.sources):
                raise BindError(
                    f'two relations of the query are called "{written.alias}"',
                    hint=f"Give one of them another name: {written.name or '(SELECT …)'} AS other.",
                    position=written.position,
                )
            relation, source = self._source(written, sight, common)
            sight = sight.also(source)
            computed, rows = rows.computed, self._expressions(sight, common)
            rows.computed = computed
            if join is None:
                text = relation
                continue
            if join.within is not None:
                raise NotSupported("WITHIN is for joins of streams", position=join.position)
            always = isinstance(join.condition, BooleanLiteral) and join.condition.value
            condition = "TRUE" if always else rows.condition(join.condition, clause="ON")
            text += f" {JOINS[join.kind]} {relation} ON {condition}"
        return rows, text

    def _expressions(self, sight: Sight, common: CommonBlocks) -> Expressions:
        return Expressions(sight, lambda select, outer: self.query(select, outer, common), self._dialect)

    def _source(self, written: sql.Relation, sight: Sight, common: CommonBlocks) -> tuple[str, ReadSource]:
        place, read = self._place("t"), None
        if written.query is not None:
            block = self.query(written.query, sight.outer, common)
            text, columns = f"({block.sql})", _outputs(block.columns, place)
        elif written.schema is None and written.name in common:
            text, columns = common[written.name].place, _outputs(common[written.name].columns, place)
        else:
            found = self._find(written)
            if isinstance(found, sql.Select):
                block = self.query(found)
                text, columns = f"({block.sql})", _outputs(block.columns, place)
            else:
                text = read = self._relation(found)
                columns = tuple(ReadColumn(c.name, c.type, f"{place}.{c.sql}", c.hidden) for c in table_columns(found))
        label = sight.label(written.alias or "query")
        return f"{text} AS {place}", ReadSource(written.alias, label, columns, read)

    def _relation(self, table: Table) -> str:
        """Each place where a table stands has a name of its own: it may be read in a way of its own."""
        name = f"o{len(self.relations)}"
        self.relations[name] = table
        return name

    def _note_conditions(self, select: sql.Select, sight: Sight) -> None:
        """What WHERE says of one relation alone. Where an outer join makes rows up, that does not hold before it."""
        if select.where is None or any(join.kind is not JoinType.INNER for join in select.joins):
            return
        wanted = [each for each in conjuncts(sight.resolved(select.where)) if not _has_queries(each)]
        for source in sight.sources:
            if source.relation is not None:
                own = [each for each in wanted if {ref.qualifier for ref in column_refs(each)} == {source.label}]
                self.conditions[source.relation] = tuple(map(_unqualified, own))


def _has_queries(expression: Expression) -> bool:
    return any(isinstance(node, sql.QueryRef) for node in walk(expression))


def _unqualified(expression: Expression) -> Expression:
    def change(node: Expression) -> Expression | None:
        return replace(node, qualifier=None) if isinstance(node, ColumnRef) else None

    return rewrite(expression, change)


def _outputs(columns: tuple[Column, ...], place: str) -> tuple[ReadColumn, ...]:
    return tuple(ReadColumn(column.name, column.type, f"{place}.r{i}") for i, column in enumerate(columns))


def _renamed(columns: tuple[Column, ...], table: sql.CommonTable) -> tuple[Column, ...]:
    if not table.columns:
        return columns
    if len(table.columns) != len(columns):
        raise BindError(
            f'WITH gives "{table.name.text}" {len(table.columns)} columns, and its query {len(columns)}',
            position=table.name.position,
        )
    return tuple(Column(name.text, column.type) for name, column in zip(table.columns, columns, strict=True))


def _alone(select: sql.Select) -> sql.Select:
    """The first SELECT of a union, without what is said of the whole."""
    return sql.Select(
        items=select.items,
        relation=select.relation,
        joins=select.joins,
        where=select.where,
        group_by=select.group_by,
        having=select.having,
        distinct=select.distinct,
        position=select.position,
    )


def _output_sort(item: sql.SortItem, columns: tuple[Column, ...], place: str) -> Sort:
    """A union is sorted by the columns that it gives."""
    found = output_number(item.expression, columns)
    if found is None:
        raise BindError(
            "a UNION can be sorted by its columns only",
            hint=f"Its columns are: {', '.join(column.name for column in columns)}.",
            position=item.expression.position,
        )
    return Sort(f"{place}.r{found}", item.descending, item.nulls_first)


def _refuse(select: sql.Select) -> None:
    """Clauses of continuous queries."""
    for clause, given in (
        ("WINDOW", select.window),
        ("PARTITION BY", select.partition_by),
        ("EMIT", select.emit),
    ):
        if given:
            raise NotSupported(
                f"{clause} is not for a query that reads",
                hint="It belongs to a query that is kept current: CREATE TABLE … AS SELECT.",
                position=select.window.position if select.window is not None else select.position,
            )
