"""The table of DDL: one declaration for each kind of statement that changes the catalog."""

from typing import Any

from holdfast.sql.bind import (
    alter,
    create_as,
    create_source,
    drop,
    function,
    hold,
    index,
    insert_select,
    query_control,
    type,
    view,
)
from holdfast.sql.bind.ddl_kind import BoundDdl, DdlKind
from holdfast.sql.syntax.statements import DdlStatement

DDL: tuple[DdlKind[Any, Any], ...] = (
    *create_source.DDL,
    *create_as.DDL,
    *alter.DDL,
    *drop.DDL,
    *insert_select.DDL,
    *type.DDL,
    *function.DDL,
    *view.DDL,
    *index.DDL,
    *hold.DDL,
    *query_control.DDL,
)
_BY_STATEMENT = {kind.statement: kind for kind in DDL}
_BY_BOUND = {kind.bound: kind for kind in DDL}


def ddl_kind(statement: DdlStatement | BoundDdl) -> DdlKind[Any, Any]:
    """The declaration of a statement's kind; the statement may be bound or not."""
    found = statement.__class__
    return _BY_BOUND[found] if isinstance(statement, BoundDdl) else _BY_STATEMENT[found]
