"""The sources of a query, their columns, and how names in the query are resolved.

With one source, plans use its column names. With several, `L.A` becomes `L_A`: the planner prefixes every column with
the alias of its source before it joins, so the names here are those of the joined rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.catalog.objects import CatalogObject, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    BindError,
    Feature,
    NotSupported,
    NotYetSupported,
    Position,
    TypeMismatch,
    UnknownColumn,
    UnknownObject,
)
from holdfast.runtime.compiler.inference import infer, type_of
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression, Lambda
from holdfast.sql.literals.constants import refuse_constants
from holdfast.sql.literals.temporal import check_moments
from holdfast.sql.literals.timestamp import replace_time_literals
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import rewrite
from holdfast.types import Column, Scalar, SqlType

PSEUDO_COLUMNS = {"ROWTIME": Scalar.BIGINT, "ROWPARTITION": Scalar.INTEGER, "ROWOFFSET": Scalar.BIGINT}
WINDOW_BOUNDS = {"WINDOWSTART": Scalar.BIGINT, "WINDOWEND": Scalar.BIGINT}
RESERVED_COLUMNS = (*PSEUDO_COLUMNS, *WINDOW_BOUNDS)
RECORD_COLUMNS = ("ROWPARTITION", "ROWOFFSET")
DEFAULT_ARGUMENT = "ROWTIME"


def reserved(name: str, position: Position | None) -> BindError:
    """The error for a declared column with a reserved name."""
    return BindError(
        f'a column cannot be named "{name}"', hint=f"Give it another name, for instance {name}_1.", position=position
    )


@dataclass(frozen=True, slots=True)
class BoundSource:
    """A stream or a table, with its alias in the query."""

    object: CatalogObject
    alias: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its own columns, in the order of `*`."""
        schema = self.object.schema
        return (*schema.key, *schema.value, *schema.headers)

    @property
    def pseudo_columns(self) -> tuple[Column, ...]:
        """The pseudo columns, except those hidden by a column of the same name."""
        bounds = WINDOW_BOUNDS if self.object.window is not None else {}
        every = {**PSEUDO_COLUMNS, **bounds}.items()
        return tuple(Column(name, type_) for name, type_ in every if self.object.schema.find(name) is None)

    def find(self, name: str) -> Column | None:
        return next((column for column in (*self.columns, *self.pseudo_columns) if column.name == name), None)


def joined_name(alias: str, name: str) -> str:
    """The name of a source's column in joined rows."""
    return f"{alias}_{name}"


class Relation:
    """The sources of a query. `extra` are columns of no source: the key of a join, the bounds of a window."""

    def __init__(self, sources: tuple[BoundSource, ...], extra: tuple[Column, ...] = ()) -> None:
        self.sources, self.extra = sources, extra
        self.joined = len(sources) > 1
        columns = [
            ScopeColumn(self.planned(source, column.name), column.type)
            for source in sources
            for column in (*source.columns, *source.pseudo_columns)
        ]
        columns += [ScopeColumn(column.name, column.type) for column in extra]
        self.scope = Scope(tuple(columns), self.name)

    @staticmethod
    def of(select: sql.Select, catalog: Catalog) -> "Relation":
        """The relation of a FROM clause and its joins."""
        sources: list[BoundSource] = []
        for each in (select.relation, *(join.relation for join in select.joins)):
            found = catalog.relation(each.full_name, position=each.position)
            if any(source.alias == each.alias for source in sources):
                raise BindError(
                    f'two relations of the query are called "{each.alias}"',
                    hint=f"Give one of them another name: {each.name} AS other.",
                    position=each.position,
                )
            if any(source.object is found for source in sources):
                raise NotSupported(
                    f"{found.name} cannot be joined with itself",
                    hint=f"Create a copy of it first: CREATE {found.KIND.upper()} … AS SELECT * FROM {found.name}.",
                    position=each.position,
                )
            sources.append(BoundSource(found, each.alias))
        return Relation(tuple(sources))

    @property
    def name(self) -> str:
        """The name used in errors."""
        return " or ".join(source.object.name for source in self.sources)

    @property
    def source(self) -> BoundSource:
        """The first source, from which a result inherits what the query does not specify."""
        return self.sources[0]

    def also(self, *columns: Column) -> "Relation":
        """This relation with more columns of no source."""
        return Relation(self.sources, (*self.extra, *columns))

    def planned(self, source: BoundSource, name: str) -> str:
        return joined_name(source.alias, name) if self.joined else name

    # ---- names

    def qualified(self, expression: Expression) -> Expression:
        """The expression with every column qualified by its source's alias, and `COUNT(*)` as `COUNT(ROWTIME)`."""

        def change(node: Expression, hidden: frozenset[str]) -> Expression | None:
            match node:
                case sql.QueryRef():
                    raise NotYetSupported(
                        Feature.EXPRESSION,
                        "a query inside an expression",
                        "a query inside an expression is not supported here yet",
                        detail="It can be used in a pull query.",
                        position=node.position,
                    )
                case ColumnRef(name, None) if name in hidden:
                    return node
                case ColumnRef():
                    source = self._source_of(node)
                    return node if source is None else ColumnRef(node.name, source.alias, node.position)
                case Lambda(parameters, body):
                    inner = hidden | set(parameters)
                    return replace(node, body=rewrite(body, lambda child: change(child, inner)))
                case Call("COUNT" as name, ()):
                    argument = ColumnRef(DEFAULT_ARGUMENT, self.source.alias, node.position)
                    return Call(name, (argument,), False, node.position)
            return None

        return replace_time_literals(rewrite(expression, lambda node: change(node, frozenset())))

    def resolve(self, expression: Expression) -> Expression:
        """The expression as plans write it, over the joined rows of all sources."""
        return self.over_rows(self.qualified(expression))

    def over_rows(self, qualified: Expression) -> Expression:
        """A qualified expression with the column names of the joined rows, or of the only source."""

        def change(node: Expression) -> Expression | None:
            if isinstance(node, ColumnRef) and node.qualifier is not None:
                name = joined_name(node.qualifier, node.name) if self.joined else node.name
                return ColumnRef(name, None, node.position)
            return None

        return rewrite(qualified, change)

    def type_of(self, resolved: Expression) -> SqlType:
        found = type_of(resolved, self.scope)
        check_moments(resolved, lambda inner: infer(inner, self.scope))
        refuse_constants(resolved)
        return found

    def condition(self, expression: Expression, *, clause: str) -> Expression:
        """A resolved expression that must be BOOLEAN."""
        resolved = self.resolve(expression)
        type_ = self.type_of(resolved)
        if type_ is not Scalar.BOOLEAN:
            raise TypeMismatch(
                f"{clause} must be BOOLEAN, not {type_}",
                hint=f"Compare it with something: {format_expression(expression)} = …",
                position=expression.position,
            )
        return resolved

    def star(self, star: sql.SelectStar) -> Iterator[tuple[str, Expression]]:
        """The columns of `*` or `x.*`."""
        if star.qualifier is not None:
            self._source_named(star.qualifier, star.position)
        for source in self.sources:
            if star.qualifier in (None, source.alias):
                for column in source.columns:
                    name = self.planned(source, column.name)
                    yield name, ColumnRef(name, None, star.position)

    def name_of(self, ref: ColumnRef) -> str:
        """The name of a column in the result if it has no alias."""
        source = self._source_of(ref)
        clashes = self.joined and sum(each.find(ref.name) is not None for each in self.sources) > 1
        return joined_name(source.alias, ref.name) if source is not None and clashes else ref.name

    # ---- lookup

    def check_qualifier(self, ref: ColumnRef) -> None:
        """Refuse a qualifier that is not the alias of a source."""
        if ref.qualifier is not None:
            self._source_named(ref.qualifier, ref.position)

    def _source_named(self, alias: str, position: Position | None) -> BoundSource:
        for source in self.sources:
            if source.alias == alias:
                return source
        known = [source.alias for source in self.sources]
        raise UnknownObject(alias, kind="relation", known=known, position=position)

    def _source_of(self, ref: ColumnRef) -> BoundSource | None:
        """The source of a column; None for `extra` columns."""
        extra = any(column.name == ref.name for column in self.extra)
        if ref.qualifier is None:
            if extra:
                return None
            found = [source for source in self.sources if source.find(ref.name) is not None]
        else:
            source = self._source_named(ref.qualifier, ref.position)
            if source.find(ref.name) is None and extra and not self.joined:
                return None
            found = [source] if source.find(ref.name) is not None else []
        if not found:
            within = self.sources if ref.qualifier is None else (self._source_named(ref.qualifier, None),)
            known = [column.name for source in within for column in (*source.columns, *source.pseudo_columns)]
            relation = " or ".join(source.object.name for source in within)
            raise UnknownColumn(ref.name, relation=relation, known=known, position=ref.position)
        if len(found) > 1:
            choices = " or ".join(f"{source.alias}.{ref.name}" for source in found)
            raise BindError(f'column "{ref.name}" is ambiguous', hint=f"Write {choices}.", position=ref.position)
        self._check_record(ref, found[0].object)
        return found[0]

    def _check_record(self, ref: ColumnRef, found: CatalogObject) -> None:
        if ref.name not in RECORD_COLUMNS or found.schema.find(ref.name) is not None:
            return
        if isinstance(found, Table) and found.window_store is not None:
            raise NotSupported(
                f"{ref.name} of the windowed table {found.name} cannot be read",
                detail="The query would read the topic's records, including those of expired windows.",
                hint="Leave it out, or read the topic as a stream.",
                position=ref.position,
            )
        if found.derived:
            raise NotSupported(
                f"{ref.name} of {found.KIND} {found.name} cannot be read",
                detail="Its rows are read directly from the query that maintains it, not from its topic.",
                position=ref.position,
            )
