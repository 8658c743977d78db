"""Object names, ids and quoting."""

import re
from typing import NewType

ObjectName = NewType("ObjectName", str)
QueryId = NewType("QueryId", str)
ServiceId = NewType("ServiceId", str)
StoreId = NewType("StoreId", str)
TopicName = NewType("TopicName", str)
CollectionId = NewType("CollectionId", str)
StateId = NewType("StateId", str)
HoldId = NewType("HoldId", str)
ObjectId = NewType("ObjectId", int)
"""The offset of the command that created an object: another object of the same name has another id."""

PLAIN = re.compile(r"[A-Z_][A-Z0-9_]*\Z")


def table_query_id(table: str) -> QueryId:
    """The id of the query that reads a table's topic into the store; a derived table has its own query instead."""
    return QueryId(f"TABLE_{table}")


def quote(name: str) -> str:
    """A name in back quotes, as plans and schemas write it."""
    return "`" + name.replace("`", "``") + "`"


def folded(text: str) -> str:
    """The name that an identifier refers to: without its quotes if quoted, else in upper case."""
    if len(text) > 2 and text[0] in '`"' and text[-1] == text[0]:
        return text[1:-1].replace(text[0] * 2, text[0])
    return text.upper()


def show(name: str) -> str:
    """A name as a user would write it: bare when it folds to itself."""
    return name if PLAIN.match(name) else quote(name)


def literal(text: str) -> str:
    """A text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
