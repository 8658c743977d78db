"""One sentence and one example for each statement of the grammar; help and the reference show them with the syntax."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.sql.parse import parse
from holdfast.sql.statements import Refused
from holdfast.sql.synopsis import Synopsis


@dataclass(frozen=True, slots=True)
class Entry:
    """What a statement is called, what it is for, and how it may look."""

    title: str
    summary: str
    example: str

    @property
    def is_built(self) -> bool:
        """False for a statement that can be read, but is refused in this release."""
        return not any(isinstance(parsed.statement, Refused) for parsed in parse(self.example))

    @property
    def about(self) -> str:
        return self.summary if self.is_built else f"{self.summary} Not in this release."


MANUAL: Mapping[str, Entry] = {
    "create_source": Entry(
        "CREATE STREAM, CREATE TABLE",
        "Declare a stream or a table over a topic; PARTITIONS has the topic made.",
        "CREATE STREAM orders (id STRING KEY, amount DOUBLE, city STRING)\n"
        "  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 2);",
    ),
    "create_as": Entry(
        "CREATE STREAM, TABLE AS SELECT",
        "Keep the result of a query current, in a topic of its own.",
        "CREATE TABLE per_city AS\n  SELECT city, COUNT(*) AS orders, SUM(amount) AS total FROM orders GROUP BY city;",
    ),
    "create_type": Entry(
        "CREATE TYPE",
        "Give a type a name, to be used in the statements that follow.",
        "CREATE TYPE address AS STRUCT<street STRING, city STRING>;",
    ),
    "drop_type": Entry(
        "DROP TYPE", "Forget the name of a type; what was made with it stays as it is.", "DROP TYPE IF EXISTS address;"
    ),
    "create_function": Entry(
        "CREATE FUNCTION",
        "Write a function in Python: of columns, or, as a class with partial, merge and result, an aggregate.",
        "CREATE FUNCTION initial(name STRING) RETURNS STRING LANGUAGE PYTHON AS '\n"
        "import pyarrow.compute as pc\n\ndef initial(name):\n    return pc.utf8_slice_codeunits(name, 0, 1)\n';",
    ),
    "drop_function": Entry(
        "DROP FUNCTION",
        "Forget the name of a function; queries keep the version that they were made with.",
        "DROP FUNCTION IF EXISTS initial;",
    ),
    "alter": Entry(
        "ALTER STREAM, ALTER TABLE",
        "Add columns to a stream or a table over a topic.",
        "ALTER STREAM orders ADD COLUMN note STRING;",
    ),
    "insert_values": Entry(
        "INSERT INTO … VALUES",
        "Write one row; it is in Kafka when the statement returns.",
        "INSERT INTO orders (id, amount, city) VALUES ('o1', 12.5, 'Oslo');",
    ),
    "insert_select": Entry(
        "INSERT INTO … SELECT",
        "Keep adding the rows of a query to a stream.",
        "INSERT INTO all_orders SELECT id, amount, city FROM orders;",
    ),
    "drop": Entry(
        "DROP STREAM, DROP TABLE",
        "Remove a stream or a table, with the query that keeps it and, when told so, its topic.",
        "DROP TABLE IF EXISTS per_city DELETE TOPIC;",
    ),
    "show": Entry("SHOW", "List what there is.", "SHOW STREAMS;"),
    "describe": Entry(
        "DESCRIBE", "Show the columns of a stream or a table, and the queries around it.", "DESCRIBE per_city;"
    ),
    "explain": Entry(
        "EXPLAIN",
        "Show the plan of a query that runs, or of a statement that would start one.",
        "EXPLAIN CREATE STREAM large AS SELECT id FROM orders WHERE amount > 100;",
    ),
    "set_property": Entry(
        "SET", "Set a property for the statements that follow.", "SET 'auto.offset.reset' = 'earliest';"
    ),
    "unset_property": Entry("UNSET", "Forget what SET said.", "UNSET 'auto.offset.reset';"),
    "define": Entry(
        "DEFINE",
        "Give a variable a value, which ${name} stands for in the statements that follow.",
        "DEFINE city = 'Oslo';",
    ),
    "undefine": Entry("UNDEFINE", "Forget a variable.", "UNDEFINE city;"),
    "terminate": Entry("TERMINATE", "End a query, or all; what they wrote stays.", "TERMINATE ALL;"),
    "pause": Entry(
        "PAUSE", "Stop a query, or all, where it is; RESUME lets it go on from there.", "PAUSE CTAS_PER_CITY_3;"
    ),
    "print": Entry(
        "PRINT", "Show the records of a topic as they come, whatever they are.", "PRINT orders FROM BEGINNING LIMIT 3;"
    ),
    "assert_topic": Entry(
        "ASSERT TOPIC",
        "Fail unless a topic is there, or is not, within the time.",
        "ASSERT TOPIC orders WITH (PARTITIONS = 2) TIMEOUT 5 SECONDS;",
    ),
    "assert_schema": Entry(
        "ASSERT SCHEMA",
        "Refused: there is no schema registry in this release.",
        "ASSERT SCHEMA SUBJECT `orders-value`;",
    ),
    "resume": Entry("RESUME", "Let a paused query, or all, go on.", "RESUME ALL;"),
    "create_view": Entry(
        "CREATE VIEW",
        "Give a query a name, to be read as a table is; it is computed anew each time.",
        "CREATE VIEW busy AS SELECT city, total FROM per_city WHERE total > 100;",
    ),
    "drop_view": Entry("DROP VIEW", "Forget a view; with CASCADE, and the indexes on it.", "DROP VIEW busy CASCADE;"),
    "create_materialized": Entry(
        "CREATE MATERIALIZED VIEW",
        "Keep the result of a query current, as CREATE TABLE … AS SELECT does, but without a topic.",
        "CREATE MATERIALIZED VIEW busy_cities WITH (RETAIN HISTORY FOR '1h') AS\n"
        "  SELECT city, COUNT(*) AS orders FROM orders GROUP BY city;",
    ),
    "drop_materialized": Entry(
        "DROP MATERIALIZED VIEW",
        "Remove a materialized view, with the query that keeps it.",
        "DROP MATERIALIZED VIEW IF EXISTS busy_cities;",
    ),
    "alter_materialized": Entry(
        "ALTER MATERIALIZED VIEW",
        "Say for how long a materialized view keeps its history.",
        "ALTER MATERIALIZED VIEW busy_cities SET (RETAIN HISTORY FOR '2h');",
    ),
    "create_index": Entry(
        "CREATE INDEX",
        "Keep the rows of a table by expressions over them, so that queries that compare these with constants find "
        "their rows at once. An index has a history of its own.",
        "CREATE INDEX by_total ON per_city (total) WITH (RETAIN HISTORY FOR '1h');",
    ),
    "alter_index": Entry(
        "ALTER INDEX",
        "Change for how long an index keeps its history.",
        "ALTER INDEX by_total SET (RETAIN HISTORY FOR '2h');",
    ),
    "drop_index": Entry("DROP INDEX", "Forget an index; what it is on stays.", "DROP INDEX by_total;"),
    "begin": Entry(
        "BEGIN",
        "Answer the queries that follow for one time, or change holds together, until COMMIT or ROLLBACK.",
        "BEGIN READ ONLY;",
    ),
    "commit": Entry("COMMIT", "End a transaction; what it changes is done now, all of it or nothing.", "COMMIT;"),
    "rollback": Entry("ROLLBACK", "End a transaction without what it was to change.", "ROLLBACK;"),
    "create_hold": Entry(
        "CREATE HOLD",
        "Keep a time of tables readable, also across restarts, until the hold is moved on or dropped.",
        "CREATE HOLD billing ON per_city WITH (MAX LAG = '6h');",
    ),
    "advance_hold": Entry(
        "ALTER HOLD … ADVANCE", "Move a hold on, so that older history can be forgotten.", "ALTER HOLD billing ADVANCE;"
    ),
    "rename_hold": Entry(
        "ALTER HOLD … RENAME", "Give a hold another name.", "ALTER HOLD billing RENAME TO old_billing;"
    ),
    "drop_hold": Entry("DROP HOLD", "End a hold; who reads at its time goes on.", "DROP HOLD billing;"),
    "query": Entry(
        "SELECT",
        "Ask a table once (a pull query), or follow it (a push query): every change with EMIT CHANGES, its rows before "
        "that with EMIT ALL.",
        "SELECT city, total FROM per_city WHERE city = 'Oslo';",
    ),
    "subscribe": Entry(
        "SUBSCRIBE",
        "Follow a table, or a query over tables, by its changes: each with its time and whether a row came or went.",
        "SUBSCRIBE TO (SELECT city, total FROM per_city WHERE total > 100) WITH (PROGRESS = true);",
    ),
}


def entry_of(rule: str, forms: Sequence[Synopsis]) -> Entry:
    """The entry of a statement; one that has none yet is called by its first word."""
    return MANUAL.get(rule) or Entry(forms[0].text.split()[0], "", "")
