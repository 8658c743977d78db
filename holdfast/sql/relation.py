"""The one relation that a query reads: which columns it has, and what a name in the query means."""

from holdfast.catalog.objects import CatalogObject
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import NotSupported, TypeMismatch, UnknownObject
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.runtime.expressions.typing import type_of
from holdfast.sql import statements as sql
from holdfast.sql.time_texts import read_time_texts
from holdfast.sql.walk import column_refs, rewrite
from holdfast.types import Scalar, SqlType

PSEUDO_COLUMNS = {"ROWTIME": Scalar.BIGINT, "ROWPARTITION": Scalar.INTEGER, "ROWOFFSET": Scalar.BIGINT}
RESERVED_COLUMNS = (*PSEUDO_COLUMNS, "WINDOWSTART", "WINDOWEND")
RECORD_COLUMNS = ("ROWPARTITION", "ROWOFFSET")
DEFAULT_ARGUMENT = "ROWTIME"


class Relation:
    """A stream or table under the name that the query gives it."""

    def __init__(self, written: sql.Relation, catalog: Catalog) -> None:
        self.object: CatalogObject = catalog.relation(written.name, position=written.position)
        self.alias = written.alias
        columns = [ScopeColumn(column.name, column.type) for column in self.object.schema.columns]
        taken = {column.name for column in columns}
        columns += [ScopeColumn(name, type_) for name, type_ in PSEUDO_COLUMNS.items() if name not in taken]
        self.scope = Scope(tuple(columns), self.object.name)

    def resolve(self, expression: Expression) -> Expression:
        """The expression as plans write it: no qualifiers, and a count of rows as the count of ROWTIME."""
        for ref in column_refs(expression):
            self._check(ref)
        return read_time_texts(rewrite(expression, self._normalise))

    def type_of(self, resolved: Expression) -> SqlType:
        return type_of(resolved, self.scope)

    def condition(self, expression: Expression, *, clause: str) -> Expression:
        """A resolved expression that must be BOOLEAN."""
        resolved = self.resolve(expression)
        type_ = self.type_of(resolved)
        if type_ is not Scalar.BOOLEAN:
            raise TypeMismatch(f"{clause} must be BOOLEAN, not {type_}", position=expression.position)
        return resolved

    def check_qualifier(self, star: sql.SelectStar) -> None:
        """Refuse `x.*` when x is not the relation."""
        if star.qualifier not in (None, self.alias):
            raise UnknownObject(star.qualifier or "", kind="relation", known=[self.alias], position=star.position)

    def _check(self, ref: ColumnRef) -> None:
        if ref.qualifier not in (None, self.alias):
            raise UnknownObject(ref.qualifier or "", kind="relation", known=[self.alias], position=ref.position)
        if ref.name in RECORD_COLUMNS and self.object.derived and self.object.schema.find(ref.name) is None:
            raise NotSupported(
                f"{ref.name} of {self.object.KIND} {self.object.name} cannot be read",
                detail="A query writes it, and its rows are read from that query, not from its topic.",
                position=ref.position,
            )

    @staticmethod
    def _normalise(expression: Expression) -> Expression | None:
        match expression:
            case ColumnRef(name, qualifier) if qualifier is not None:
                return ColumnRef(name, None, expression.position)
            case Call("COUNT" as name, ()):
                return Call(name, (ColumnRef(DEFAULT_ARGUMENT, None, expression.position),), False, expression.position)
        return None
