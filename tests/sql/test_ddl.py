"""Every DDL statement is declared, and its declaration is whole."""

import sys
from typing import Any

import pytest

from holdfast.errors import NotSupported
from holdfast.planner.commands import commands_for
from holdfast.sql.bind.ddl import DDL, ddl_kind
from holdfast.sql.bind.ddl_kind import BoundDdl, BoundPlan, DdlKind, Privilege, TransactionRule
from holdfast.sql.bind.query_control import BoundQueryControl
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.parse import parse
from tests.sql.build import catalog_of

CATALOG = catalog_of(
    "CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    "CREATE STREAM all_s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='all_s', VALUE_FORMAT='JSON');"
    "CREATE TABLE t AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;"
    "CREATE VIEW v AS SELECT id FROM t;"
    "CREATE INDEX by_n ON t (n);"
    "CREATE HOLD h ON t;"
    "CREATE TYPE address AS STRUCT<city STRING>;"
)
STATEMENTS = {
    "CREATE STREAM x (id STRING KEY, n INT) WITH (KAFKA_TOPIC='x', VALUE_FORMAT='JSON');": "stream/X/create",
    "CREATE TABLE x AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;": "table/X/create",
    "CREATE MATERIALIZED VIEW x AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;": "materialized_view/X/create",
    "INSERT INTO all_s SELECT id, n FROM s;": "stream/ALL_S/insert",
    "ALTER STREAM s ADD COLUMN more INT;": "stream/S/alter",
    "DROP STREAM all_s;": "stream/ALL_S/drop",
    "CREATE TYPE x AS INT;": "type/X/create",
    "DROP TYPE address;": "type/ADDRESS/drop",
    "CREATE VIEW x AS SELECT id FROM t;": "view/X/create",
    "DROP VIEW v;": "view/V/drop",
    "CREATE INDEX x ON t (n);": "index/X/create",
    "ALTER INDEX by_n RESET (RETAIN HISTORY);": "index/BY_N/alter",
    "DROP INDEX by_n;": "index/BY_N/drop",
    "CREATE HOLD x ON t;": "hold/X/create",
    "ALTER HOLD h RENAME TO x;": "hold/H/alter",
    "DROP HOLD h;": "hold/H/drop",
    "PAUSE ALL;": "pause/ALL/execute",
    "RESUME ALL;": "resume/ALL/execute",
    "TERMINATE ALL;": "terminate/{query}/execute",
}


def bound_forms(base: type) -> set[type]:
    """The classes below a base; a dataclass with slots replaces the class that was written, which is left out."""
    below = {each for each in base.__subclasses__() if getattr(sys.modules[each.__module__], each.__name__) is each}
    return below.union(*map(bound_forms, below)) - {BoundPlan, BoundQueryControl}


def test_every_statement_and_every_bound_form_has_one_declaration() -> None:
    assert {kind.statement for kind in DDL} == set(sql.DdlStatement.__args__)
    assert {kind.bound for kind in DDL} == bound_forms(BoundDdl)
    assert len({kind.statement for kind in DDL}) == len({kind.bound for kind in DDL}) == len(DDL)


@pytest.mark.parametrize("kind", DDL, ids=lambda kind: kind.statement.__name__)
def test_a_declaration_is_whole(kind: DdlKind[Any, Any]) -> None:
    """Somebody must be allowed to run it, and a plan comes from its declaration."""
    assert kind.privileges
    assert (kind.command is not None) == issubclass(kind.bound, BoundPlan)
    creates = Privilege.CREATE in kind.privileges
    assert creates != (Privilege.OWNER in kind.privileges) or kind.privileges[0] is Privilege.INSERT
    assert kind.transaction is not TransactionRule.CREATES or creates


@pytest.mark.parametrize(("text", "id_"), STATEMENTS.items())
def test_the_id_of_a_command_is_the_declared_one(text: str, id_: str) -> None:
    (parsed,) = parse(text)
    bound = bind(parsed.statement, CATALOG)
    assert isinstance(bound, BoundDdl)
    kind = ddl_kind(bound)
    assert kind is ddl_kind(parsed.statement)
    query = next(iter(CATALOG.queries))
    assert str(kind.id(bound)) == id_.format(query=query)
    commands = commands_for(bound, text=parsed.text, number=99)
    assert {(each.id.type, each.id.action) for each in commands} == {(kind.id(bound).type, kind.id(bound).action)}
    assert kind.message(bound).endswith(".")


def test_what_is_not_ddl_has_no_declaration() -> None:
    (parsed,) = parse("ASSERT SCHEMA SUBJECT s;")
    assert not isinstance(parsed.statement, sql.DdlStatement)
    with pytest.raises(NotSupported):
        bind(parsed.statement, CATALOG)
