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

PLAIN = re.compile(r"[A-Z_][A-Z0-9_]*\Z")


def quote(name: str) -> str:
    """A name inside back-quotes, as plans and schemas write it."""
    return "`" + name.replace("`", "``") + "`"


def show(name: str) -> str:
    """A name as a user would write it: bare when it folds to itself."""
    return name if PLAIN.match(name) else quote(name)


def literal(text: str) -> str:
    """A text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
