"""A summary and an example of each statement in the grammar; help and the reference show them with the syntax."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.sql.syntax.parse import parse
from holdfast.sql.syntax.statements import Refused
from holdfast.sql.syntax.synopsis import Synopsis


@dataclass(frozen=True, slots=True)
class ManualEntry:
    """The title, summary and example of a statement."""

    title: str
    summary: str
    example: str

    @property
    def is_built(self) -> bool:
        """False for a statement that is parsed, but not supported in this release."""
        return not any(isinstance(parsed.statement, Refused) for parsed in parse(self.example))

    @property
    def about(self) -> str:
        return self.summary if self.is_built else f"{self.summary} Not in this release."


MANUAL: Mapping[str, ManualEntry] = {
    "create_source": ManualEntry(
        "CREATE STREAM, CREATE TABLE",
        "Declare a stream or a table over a topic; PARTITIONS creates the topic if it is missing.",
        "CREATE STREAM orders (id STRING KEY, amount DOUBLE, city STRING)\n"
        "  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 2);",
    ),
    "create_as": ManualEntry(
        "CREATE STREAM, TABLE AS SELECT",
        "Maintain the result of a query, and write it to a topic.",
        "CREATE TABLE per_city AS\n  SELECT city, COUNT(*) AS orders, SUM(amount) AS total FROM orders GROUP BY city;",
    ),
    "create_type": ManualEntry(
        "CREATE TYPE",
        "Name a type, for use in later statements.",
        "CREATE TYPE address AS STRUCT<street STRING, city STRING>;",
    ),
    "drop_type": ManualEntry(
        "DROP TYPE", "Drop the name of a type; objects that use it are unaffected.", "DROP TYPE IF EXISTS address;"
    ),
    "create_function": ManualEntry(
        "CREATE FUNCTION",
        "Define a function in Python: over columns or, as a class with partial, merge and result, an aggregate.",
        "CREATE FUNCTION initial(name STRING) RETURNS STRING LANGUAGE PYTHON AS '\n"
        "import pyarrow.compute as pc\n\ndef initial(name):\n    return pc.utf8_slice_codeunits(name, 0, 1)\n';",
    ),
    "drop_function": ManualEntry(
        "DROP FUNCTION",
        "Drop a function; running queries keep using the version they were created with.",
        "DROP FUNCTION IF EXISTS initial;",
    ),
    "alter": ManualEntry(
        "ALTER STREAM, ALTER TABLE",
        "Add columns to a stream or a table over a topic.",
        "ALTER STREAM orders ADD COLUMN note STRING;",
    ),
    "insert_values": ManualEntry(
        "INSERT INTO … VALUES",
        "Insert one row; it is in Kafka when the statement returns.",
        "INSERT INTO orders (id, amount, city) VALUES ('o1', 12.5, 'Oslo');",
    ),
    "insert_select": ManualEntry(
        "INSERT INTO … SELECT",
        "Write the rows of a query to an existing stream, continuously.",
        "INSERT INTO all_orders SELECT id, amount, city FROM orders;",
    ),
    "drop": ManualEntry(
        "DROP STREAM, DROP TABLE",
        "Drop a stream or a table, its maintaining query and, with DELETE TOPIC, its topic.",
        "DROP TABLE IF EXISTS per_city DELETE TOPIC;",
    ),
    "show": ManualEntry("SHOW", "List objects, queries, topics, functions, properties and variables.", "SHOW STREAMS;"),
    "describe": ManualEntry(
        "DESCRIBE",
        "Show the columns of a stream or a table, and the queries that read or write it.",
        "DESCRIBE per_city;",
    ),
    "explain": ManualEntry(
        "EXPLAIN",
        "Show the plan of a running query, or of a statement.",
        "EXPLAIN CREATE STREAM large AS SELECT id FROM orders WHERE amount > 100;",
    ),
    "set_property": ManualEntry(
        "SET", "Set a property for the statements that follow.", "SET 'auto.offset.reset' = 'earliest';"
    ),
    "unset_property": ManualEntry("UNSET", "Reset a property to its default.", "UNSET 'auto.offset.reset';"),
    "define": ManualEntry(
        "DEFINE",
        "Define a variable; ${name} in later statements is replaced by its value.",
        "DEFINE city = 'Oslo';",
    ),
    "undefine": ManualEntry("UNDEFINE", "Remove a variable.", "UNDEFINE city;"),
    "terminate": ManualEntry("TERMINATE", "Terminate a query, or all; their results remain.", "TERMINATE ALL;"),
    "pause": ManualEntry("PAUSE", "Pause a query, or all; RESUME continues it.", "PAUSE CTAS_PER_CITY_3;"),
    "print": ManualEntry(
        "PRINT", "Print the records of a topic as they arrive, in any format.", "PRINT orders FROM BEGINNING LIMIT 3;"
    ),
    "assert_topic": ManualEntry(
        "ASSERT TOPIC",
        "Fail unless a topic exists (or, with NOT EXISTS, does not exist) within the timeout.",
        "ASSERT TOPIC orders WITH (PARTITIONS = 2) TIMEOUT 5 SECONDS;",
    ),
    "assert_schema": ManualEntry(
        "ASSERT SCHEMA",
        "Not supported: this release has no schema registry.",
        "ASSERT SCHEMA SUBJECT `orders-value`;",
    ),
    "resume": ManualEntry("RESUME", "Resume a paused query, or all.", "RESUME ALL;"),
    "create_view": ManualEntry(
        "CREATE VIEW",
        "Name a query, to be read like a table; it is computed each time it is read.",
        "CREATE VIEW busy AS SELECT city, total FROM per_city WHERE total > 100;",
    ),
    "drop_view": ManualEntry(
        "DROP VIEW", "Drop a view; with CASCADE, also the indexes on it.", "DROP VIEW busy CASCADE;"
    ),
    "create_materialized": ManualEntry(
        "CREATE MATERIALIZED VIEW",
        "Maintain the result of a query, as CREATE TABLE … AS SELECT does, but without a topic.",
        "CREATE MATERIALIZED VIEW busy_cities WITH (RETAIN HISTORY FOR '1h') AS\n"
        "  SELECT city, COUNT(*) AS orders FROM orders GROUP BY city;",
    ),
    "drop_materialized": ManualEntry(
        "DROP MATERIALIZED VIEW",
        "Drop a materialized view and its maintaining query.",
        "DROP MATERIALIZED VIEW IF EXISTS busy_cities;",
    ),
    "alter_materialized": ManualEntry(
        "ALTER MATERIALIZED VIEW",
        "Change how long a materialized view retains its history.",
        "ALTER MATERIALIZED VIEW busy_cities SET (RETAIN HISTORY FOR '2h');",
    ),
    "create_index": ManualEntry(
        "CREATE INDEX",
        "Index the rows of a table by expressions, so that queries that compare these with constants find their rows "
        "quickly. An index has its own history.",
        "CREATE INDEX by_total ON per_city (total) WITH (RETAIN HISTORY FOR '1h');",
    ),
    "alter_index": ManualEntry(
        "ALTER INDEX",
        "Change how long an index retains its history.",
        "ALTER INDEX by_total SET (RETAIN HISTORY FOR '2h');",
    ),
    "drop_index": ManualEntry("DROP INDEX", "Drop an index; the indexed object is unaffected.", "DROP INDEX by_total;"),
    "begin": ManualEntry(
        "BEGIN",
        "Begin a transaction: its queries all read at one time, or its changes are applied together by COMMIT.",
        "BEGIN READ ONLY;",
    ),
    "commit": ManualEntry("COMMIT", "Commit a transaction; its changes are applied together or not at all.", "COMMIT;"),
    "rollback": ManualEntry("ROLLBACK", "End a transaction and discard its changes.", "ROLLBACK;"),
    "create_hold": ManualEntry(
        "CREATE HOLD",
        "Keep tables readable at a time, even across restarts, until the hold is advanced or dropped.",
        "CREATE HOLD billing ON per_city WITH (MAX LAG = '6h');",
    ),
    "advance_hold": ManualEntry(
        "ALTER HOLD … ADVANCE", "Advance a hold, so that older history can be compacted.", "ALTER HOLD billing ADVANCE;"
    ),
    "rename_hold": ManualEntry("ALTER HOLD … RENAME", "Rename a hold.", "ALTER HOLD billing RENAME TO old_billing;"),
    "drop_hold": ManualEntry("DROP HOLD", "Drop a hold; running reads are unaffected.", "DROP HOLD billing;"),
    "query": ManualEntry(
        "SELECT",
        "Read a table once (pull query) or follow it (push query): its changes with EMIT CHANGES, its current rows and "
        "then its changes with EMIT ALL.",
        "SELECT city, total FROM per_city WHERE city = 'Oslo';",
    ),
    "subscribe": ManualEntry(
        "SUBSCRIBE",
        "Follow the changes of a table, or of a query over tables, each with its time and diff.",
        "SUBSCRIBE TO (SELECT city, total FROM per_city WHERE total > 100) WITH (PROGRESS = true);",
    ),
}


def entry_of(rule: str, forms: Sequence[Synopsis]) -> ManualEntry:
    """The entry of a statement; if it is missing, one with only a title, the first word."""
    return MANUAL.get(rule) or ManualEntry(forms[0].text.split()[0], "", "")
