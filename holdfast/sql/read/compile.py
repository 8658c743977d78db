"""Compiles a pull query into one SELECT of an engine's SQL, over relations of the store.

The text contains only catalog relations and declared functions. Columns have their physical names, so that names
chosen by users never reach an engine.
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
from holdfast.sql.read.blocks import Block, CommonBlock, Sort, cast_columns, output_columns, tail
from holdfast.sql.read.expressions import Expressions
from holdfast.sql.read.names import ReadColumn, ReadSource, VisibleRelations, table_columns
from holdfast.sql.read.select_list import SelectList, output_number
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import column_refs, conjuncts, rewrite, walk
from holdfast.types import Column

JOINS = {
    JoinType.INNER: "INNER JOIN",
    JoinType.LEFT: "LEFT JOIN",
    JoinType.RIGHT: "RIGHT JOIN",
    JoinType.OUTER: "FULL JOIN",
}
CommonBlocks = Mapping[str, CommonBlock]
RelationTarget = Table | sql.Select
"""What the name of a relation refers to: a table, or the query of a view."""


class ReadCompiler:
    """One compilation. `find` looks up the relations of a FROM clause; `relations` are the tables that it found.

    `conditions` are, for each relation, the conditions that all rows used by the query satisfy.
    """

    def __init__(self, find: Callable[[sql.RelationReference], RelationTarget], dialect: Dialect) -> None:
        self._find, self._dialect = find, dialect
        self.relations: dict[str, Table] = {}
        self.conditions: dict[str, tuple[Expression, ...]] = {}
        self._numbers = count()
        self._nested = False

    def query(
        self, select: sql.Select, outer: VisibleRelations | None = None, common: CommonBlocks | None = None
    ) -> Block:
        """A complete query, with its WITH clause, its unions and their common ending."""
        if select.as_of is not None and self._nested:
            raise BindError(
                "AS OF is only allowed at the end of the whole query",
                detail="A query reads all of its relations at one time.",
                position=select.as_of.position,
            )
        self._nested = True
        _refuse(select)
        common, with_ = self._common_tables(select, common or {})
        block = self._united(select, outer, common) if select.unions else self._select(select, outer, common)
        return Block(f"{with_}{block.sql}", block.columns)

    def _alias(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"

    def _common_tables(self, select: sql.Select, common: CommonBlocks) -> tuple[CommonBlocks, str]:
        known = dict(common)
        texts = []
        names: set[str] = set()
        for table in select.tables:
            if table.name.text in names:
                raise BindError(f'WITH defines "{table.name.text}" twice', position=table.name.position)
            names.add(table.name.text)
            block = self.query(table.query, None, known)
            alias = self._alias("w")
            known[table.name.text] = CommonBlock(alias, _renamed(block.columns, table))
            texts.append(f"{alias} AS ({block.sql})")
        return known, f"WITH {', '.join(texts)} " if texts else ""

    # ---- one SELECT

    def _select(self, select: sql.Select, outer: VisibleRelations | None, common: CommonBlocks) -> Block:
        rows, from_ = self._from(select, outer, common)
        where = f" WHERE {rows.condition(select.where, clause='WHERE')}" if select.where is not None else ""
        self._collect_conditions(select, rows.visible)
        output = SelectList(select, rows, self._dialect)
        # Compiled before the FROM is written: ORDER BY and HAVING may need more aggregates.
        having, order = output.having(), output.order()
        source = output.grouped(f"{from_}{where}") if output.grouping is not None else f"{from_}{where}"
        if having:
            source += f" WHERE {having}"
        items = ", ".join(f"{text} AS r{i}" for i, text in enumerate(output.texts))
        if not select.distinct:
            return Block(f"SELECT {items} FROM {source}{tail(order, select.limit, select.offset)}", output.columns)
        alias = self._alias("d")
        core = f"(SELECT DISTINCT {items} FROM {source}) AS {alias}"
        sorted_ = [Sort(f"{alias}.{sort.text}", sort.descending, sort.nulls_first) for sort in order]
        ending = tail(sorted_, select.limit, select.offset)
        return Block(f"SELECT {output_columns(len(output.columns), alias)} FROM {core}{ending}", output.columns)

    # ---- unions

    def _united(self, select: sql.Select, outer: VisibleRelations | None, common: CommonBlocks) -> Block:
        first = self._select(_first_select(select), outer, common)
        blocks = [first, *(self.query(part.query, outer, common) for part in select.unions)]
        types = [column.type for column in first.columns]
        for part, block in zip(select.unions, blocks[1:], strict=True):
            if len(block.columns) != len(types):
                raise BindError(
                    "each SELECT of a UNION must have the same number of columns: "
                    f"{len(types)}, not {len(block.columns)}",
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
        texts = [cast_columns(block, types, self._dialect, self._alias("u")) for block in blocks]
        united = texts[0]
        for part, text in zip(select.unions, texts[1:], strict=True):
            united = f"{united} UNION {'ALL ' if part.all else ''}{text}"
        columns = tuple(Column(c.name, t) for c, t in zip(first.columns, types, strict=True))
        alias = self._alias("s")
        order = [_output_sort(item, columns, alias) for item in select.order_by]
        ending = tail(order, select.limit, select.offset)
        return Block(f"SELECT {output_columns(len(columns), alias)} FROM ({united}) AS {alias}{ending}", columns)

    # ---- FROM

    def _from(
        self, select: sql.Select, outer: VisibleRelations | None, common: CommonBlocks
    ) -> tuple[Expressions, str]:
        visible, text = VisibleRelations((), outer), ""
        rows = self._expressions(visible, common)
        for join in (None, *select.joins):
            reference = select.relation if join is None else join.relation
            if any(source.alias == reference.alias != "" for source in visible.sources):
                raise BindError(
                    f'two relations of the query are called "{reference.alias}"',
                    hint=f"Give one of them another name: {reference.name or '(SELECT …)'} AS other.",
                    position=reference.position,
                )
            relation, source = self._source(reference, visible, common)
            visible = visible.also(source)
            computed, rows = rows.computed, self._expressions(visible, common)
            rows.computed = computed
            if join is None:
                text = relation
                continue
            if join.within is not None:
                raise NotSupported("WITHIN is only allowed in joins of two streams", position=join.position)
            always = isinstance(join.condition, BooleanLiteral) and join.condition.value
            condition = "TRUE" if always else rows.condition(join.condition, clause="ON")
            text += f" {JOINS[join.kind]} {relation} ON {condition}"
        return rows, text

    def _expressions(self, visible: VisibleRelations, common: CommonBlocks) -> Expressions:
        return Expressions(visible, lambda select, outer: self.query(select, outer, common), self._dialect)

    def _source(
        self, reference: sql.RelationReference, visible: VisibleRelations, common: CommonBlocks
    ) -> tuple[str, ReadSource]:
        alias, table_name = self._alias("t"), None
        if reference.query is not None:
            block = self.query(reference.query, visible.outer, common)
            text, columns = f"({block.sql})", _outputs(block.columns, alias)
        elif reference.schema is None and reference.name in common:
            text, columns = common[reference.name].alias, _outputs(common[reference.name].columns, alias)
        else:
            found = self._find(reference)
            if isinstance(found, sql.Select):
                block = self.query(found)
                text, columns = f"({block.sql})", _outputs(block.columns, alias)
            else:
                text = table_name = self._relation(found)
                columns = tuple(ReadColumn(c.name, c.type, f"{alias}.{c.sql}", c.hidden) for c in table_columns(found))
        label = visible.label(reference.alias or "query")
        return f"{text} AS {alias}", ReadSource(reference.alias, label, columns, table_name)

    def _relation(self, table: Table) -> str:
        """A new name for each occurrence of a table, because each may be read in a different way."""
        name = f"o{len(self.relations)}"
        self.relations[name] = table
        return name

    def _collect_conditions(self, select: sql.Select, visible: VisibleRelations) -> None:
        """Collect the conditions of WHERE on a single relation. Before an outer join, which adds rows, they need not
        hold."""
        if select.where is None or any(join.kind is not JoinType.INNER for join in select.joins):
            return
        wanted = [each for each in conjuncts(visible.resolved(select.where)) if not _has_queries(each)]
        for source in visible.sources:
            if source.relation is not None:
                own = [each for each in wanted if {ref.qualifier for ref in column_refs(each)} == {source.label}]
                self.conditions[source.relation] = tuple(map(_unqualified, own))


def _has_queries(expression: Expression) -> bool:
    return any(isinstance(node, sql.QueryRef) for node in walk(expression))


def _unqualified(expression: Expression) -> Expression:
    def change(node: Expression) -> Expression | None:
        return replace(node, qualifier=None) if isinstance(node, ColumnRef) else None

    return rewrite(expression, change)


def _outputs(columns: tuple[Column, ...], alias: str) -> tuple[ReadColumn, ...]:
    return tuple(ReadColumn(column.name, column.type, f"{alias}.r{i}") for i, column in enumerate(columns))


def _renamed(columns: tuple[Column, ...], table: sql.CommonTable) -> tuple[Column, ...]:
    if not table.columns:
        return columns
    if len(table.columns) != len(columns):
        raise BindError(
            f'"{table.name.text}" names {len(table.columns)} columns, but its query has {len(columns)}',
            position=table.name.position,
        )
    return tuple(Column(name.text, column.type) for name, column in zip(table.columns, columns, strict=True))


def _first_select(select: sql.Select) -> sql.Select:
    """The first SELECT of a union, without the clauses that apply to the union."""
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


def _output_sort(item: sql.SortItem, columns: tuple[Column, ...], alias: str) -> Sort:
    """The sort key of a union, which can only be sorted by its columns."""
    found = output_number(item.expression, columns)
    if found is None:
        raise BindError(
            "a UNION can only be sorted by its columns",
            hint=f"Its columns are: {', '.join(column.name for column in columns)}.",
            position=item.expression.position,
        )
    return Sort(f"{alias}.r{found}", item.descending, item.nulls_first)


def _refuse(select: sql.Select) -> None:
    """Refuse clauses of continuous queries."""
    for clause, present in (
        ("WINDOW", select.window),
        ("PARTITION BY", select.partition_by),
        ("EMIT", select.emit),
    ):
        if present:
            raise NotSupported(
                f"{clause} is not allowed in a pull query or a view",
                hint="It is only allowed in a continuous query: CREATE TABLE … AS SELECT.",
                position=select.window.position if select.window is not None else select.position,
            )
