"""The system tables: the state of the service, as tables that can be read and subscribed to.

They have Materialize's names where the contents are the same. Names ignore case, and the schema is optional; a user's
object hides a system table of the same name, unless the schema is given.
"""

from dataclasses import dataclass

from holdfast.catalog.objects import NO_TOPIC_FORMATS, Table
from holdfast.names import ObjectName, QueryId
from holdfast.runtime.expressions.parse import parse_schema

QUERY = QueryId("SYSTEM_TABLES")
"""The query that maintains the system tables."""


@dataclass(frozen=True, slots=True)
class SystemTable:
    """One system table; `columns` is its schema as text, `about` describes it."""

    schema: str
    name: str
    columns: str
    about: str

    @property
    def full_name(self) -> ObjectName:
        return ObjectName(f"{self.schema}.{self.name}")

    @property
    def table(self) -> Table:
        return Table(
            name=self.full_name,
            schema=parse_schema(self.columns),
            topic=None,
            formats=NO_TOPIC_FORMATS,
            read_only=True,
            statement=f"built in: {self.about}",
            query=QUERY,
        )


SYSTEM_TABLES = (
    SystemTable(
        "mz_catalog",
        "mz_objects",
        "`ID` STRING KEY, `NAME` STRING, `TYPE` STRING",
        "streams, tables, materialized views, views and indexes",
    ),
    SystemTable(
        "mz_catalog",
        "mz_tables",
        "`ID` STRING KEY, `NAME` STRING, `TOPIC` STRING, `KEY_FORMAT` STRING, `VALUE_FORMAT` STRING, `QUERY_ID` STRING,"
        " `RETAIN_HISTORY_MS` BIGINT, `CREATE_SQL` STRING",
        "tables",
    ),
    SystemTable(
        "mz_catalog",
        "mz_streams",
        "`ID` STRING KEY, `NAME` STRING, `TOPIC` STRING, `KEY_FORMAT` STRING, `VALUE_FORMAT` STRING, `QUERY_ID` STRING,"
        " `CREATE_SQL` STRING",
        "streams",
    ),
    SystemTable(
        "mz_catalog",
        "mz_sources",
        "`ID` STRING KEY, `NAME` STRING, `TYPE` STRING, `TOPIC` STRING, `READ_ONLY` BOOLEAN",
        "streams and tables over topics that other programs write",
    ),
    SystemTable(
        "mz_catalog",
        "mz_views",
        "`ID` STRING KEY, `NAME` STRING, `READS` STRING, `DEFINITION` STRING",
        "views",
    ),
    SystemTable(
        "mz_catalog",
        "mz_materialized_views",
        "`ID` STRING KEY, `NAME` STRING, `READS` STRING, `QUERY_ID` STRING, `RETAIN_HISTORY_MS` BIGINT,"
        " `DEFINITION` STRING",
        "materialized views",
    ),
    SystemTable(
        "mz_catalog",
        "mz_indexes",
        "`ID` STRING KEY, `NAME` STRING, `ON_ID` STRING, `RETAIN_HISTORY_MS` BIGINT, `CREATE_SQL` STRING",
        "indexes, and the objects that they are on",
    ),
    SystemTable(
        "mz_catalog",
        "mz_index_columns",
        "`INDEX_ID` STRING KEY, `INDEX_POSITION` BIGINT KEY, `ON_POSITION` BIGINT, `ON_EXPRESSION` STRING,"
        " `NULLABLE` BOOLEAN",
        "the keys of indexes: columns of the indexed object, by position, or expressions over them",
    ),
    SystemTable(
        "mz_catalog",
        "mz_columns",
        "`ID` STRING KEY, `POSITION` INTEGER KEY, `NAME` STRING, `TYPE` STRING, `ROLE` STRING",
        "columns of streams, tables and materialized views; those of the key come first",
    ),
    SystemTable(
        "mz_catalog",
        "mz_holds",
        "`ID` STRING KEY, `SCHEMA_ID` STRING, `NAME` STRING, `AT` BIGINT",
        "holds and their times",
    ),
    SystemTable(
        "mz_catalog",
        "mz_hold_objects",
        "`HOLD_ID` STRING KEY, `ON_ID` STRING KEY",
        "the objects that holds are on",
    ),
    SystemTable(
        "mz_internal",
        "mz_hold_status",
        "`ID` STRING KEY, `LAG_MS` BIGINT, `MAX_LAG_MS` BIGINT, `PINNED_ROWS` BIGINT, `PINNED_BYTES` BIGINT,"
        " `AUTOMATIC_ADVANCES` BIGINT, `REASON` STRING",
        "the lag of holds, the history retained for them, and how often they advanced automatically; at most a second"
        " old",
    ),
    SystemTable(
        "mz_internal",
        "mz_frontiers",
        "`ID` STRING KEY, `SINCE` BIGINT, `UPPER` BIGINT",
        "the times from and up to which tables, materialized views and indexes can be read; at most a second old",
    ),
    SystemTable(
        "mz_internal",
        "mz_queries",
        "`ID` STRING KEY, `STATE` STRING, `DONE` DOUBLE, `REASON` STRING, `SINK` STRING, `STATEMENT` STRING",
        "queries that maintain objects, with their state and progress; at most a second old",
    ),
    SystemTable(
        "mz_internal",
        "mz_subscriptions",
        "`ID` STRING KEY, `OBJECTS` STRING, `STARTED_AT` BIGINT, `HELD` BIGINT, `LAG_MS` BIGINT, `SENT_ROWS` BIGINT,"
        " `SENT_BYTES` BIGINT, `BUFFERED_BYTES` BIGINT, `PEAK_BUFFERED_BYTES` BIGINT",
        "open push queries and subscriptions; at most a second old",
    ),
)

_BY_NAME: dict[str, Table] = {}
for _each in SYSTEM_TABLES:
    _BY_NAME[_each.full_name.upper()] = _BY_NAME[_each.name.upper()] = _each.table


def system_table(name: str) -> Table | None:
    """The system table of a name, with or without its schema."""
    return _BY_NAME.get(name.upper())


def is_system(found: object) -> bool:
    return isinstance(found, Table) and found.query == QUERY
