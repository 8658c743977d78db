"""Programs of SQL statements, and their Spark SQL compared with golden files. No Spark is started.

`HOLDFAST_REWRITE_GOLDEN=1 pytest tests/runtime/spark/builders` writes the golden files again.
"""

import os
import re
from pathlib import Path

from holdfast.catalog.commands import decode_command, encode_command
from holdfast.catalog.fold import fold
from holdfast.catalog.objects import Table
from holdfast.catalog.snapshot import EMPTY
from holdfast.names import ObjectName
from holdfast.planner.commands import commands_for
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.program import Input, Program
from holdfast.runtime.spark.build import build_query, build_table
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

GOLDEN = Path(__file__).parent / "golden"
REWRITE = "HOLDFAST_REWRITE_GOLDEN"

OBJECTS = """
CREATE STREAM orders (id STRING KEY, item STRING, city STRING, amount INT, tags ARRAY<STRING>)
  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');
CREATE STREAM payments (id STRING KEY, paid INT) WITH (KAFKA_TOPIC='payments', VALUE_FORMAT='JSON');
CREATE TABLE users (id STRING PRIMARY KEY, name STRING, region STRING)
  WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON');
CREATE TABLE addresses (id STRING PRIMARY KEY, street STRING) WITH (KAFKA_TOPIC='addresses', VALUE_FORMAT='JSON');
CREATE TABLE regions (region STRING PRIMARY KEY, country STRING) WITH (KAFKA_TOPIC='regions', VALUE_FORMAT='JSON');
"""


def program(sql: str) -> Program:
    """The program of the last statement, over the objects above."""
    commands: list[tuple[bytes, bytes]] = []
    catalog, dataflow = EMPTY, Dataflow()
    for parsed in statements(OBJECTS + sql):
        bound = bind(parsed.statement, catalog)
        commands += map(encode_command, commands_for(bound, text=parsed.text, number=len(commands)))
        catalog = fold(decode_command(key, value) for key, value in commands)
        for found in catalog.objects.values():
            dataflow.declare(found.name, found.topic, maintained=found.maintained)
        for table in catalog.tables:
            if not table.derived:
                dataflow.add(_table_program(table))
        for entry in catalog.queries.values():
            plan = decode(entry.plan).query
            assert plan is not None
            dataflow.add(build_query(plan, dataflow))
    return list(dataflow.programs.values())[-1]


def table_program(name: str, sql: str = "") -> Program:
    """The program of one of the tables above, or of those in `sql`."""
    commands: list[tuple[bytes, bytes]] = []
    catalog = EMPTY
    for parsed in statements(OBJECTS + sql):
        bound = bind(parsed.statement, catalog)
        commands += map(encode_command, commands_for(bound, text=parsed.text, number=len(commands)))
        catalog = fold(decode_command(key, value) for key, value in commands)
    return _table_program(next(table for table in catalog.tables if table.name == ObjectName(name)))


def _table_program(table: Table) -> Program:
    assert table.topic is not None
    assert table.formats is not None
    return build_table(
        table.name, table.topic, table.schema, table.formats, table.timestamp, table.window, table.window_store
    )


def check(name: str, program: Program) -> None:
    """Compare the SQL of a program with `golden/NAME.sql`."""
    check_text(name, shown(program))


def check_text(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.sql"
    if os.environ.get(REWRITE):
        file.write_text(text)
    assert text == file.read_text(), f"{file.name} differs; if the change is intended, run again with {REWRITE}=1"


def shown(program: Program) -> str:
    """All stages as text: the inputs of each, its action, and its SQL with one clause per line."""
    parts = []
    for number, stage in enumerate(program.stages):
        parts.append(f"-- stage {number}, round {stage.round}: {type(stage.action).__name__}")
        parts += [f"--   reads {source.view}: {_input(source)}" for source in stage.inputs]
        parts.append(formatted(stage.fragment.sql) + ";\n")
    return _numbered("\n".join(parts))


def _input(source: Input) -> str:
    fields = (getattr(source, name, None) for name in ("topic", "name", "state", "stage", "by"))
    return " ".join([type(source).__name__, *(str(value) for value in fields if value is not None)])


def _numbered(text: str) -> str:
    """The text with views numbered in order of appearance, because their names are digests."""
    views: dict[str, str] = {}
    for view in re.findall(r"\b[dtoshrlgw]_[0-9a-f]{12}\b", text):
        views.setdefault(view, f"{view[0]}_{len(views) + 1}")
    return re.sub(r"\b[dtoshrlgw]_[0-9a-f]{12}\b", lambda found: views[found.group()], text)


CLAUSES = ("FROM ", "WHERE ", "GROUP BY ", "LEFT JOIN ", "LEFT ANTI JOIN ", "JOIN ", "UNION ALL ", "UNION ")


def formatted(sql: str) -> str:
    """SQL with every clause of every SELECT on a line of its own, indented by its depth."""
    out: list[str] = []
    stack: list[bool] = []
    at, quoted = 0, False
    while at < len(sql):
        char = sql[at]
        if char == "'":
            quoted = not quoted
        elif not quoted and char == "(":
            stack.append(sql.startswith("(SELECT ", at))
            if stack[-1]:
                out.append("(\n" + _indent(stack))
                at += 1
                continue
        elif not quoted and char == ")":
            was = stack.pop()
            out.append("\n" + _indent(stack) + ")" if was else ")")
            at += 1
            continue
        elif not quoted and char == " " and all(stack[-1:]):
            clause = next((clause for clause in CLAUSES if sql.startswith(clause, at + 1)), None)
            if clause is not None:
                out.append("\n" + _indent(stack))
                after = at + 1 + len(clause)
                if clause.startswith("UNION") and sql.startswith("SELECT", after):
                    out.append(clause.strip() + "\n" + _indent(stack))
                else:
                    out.append(clause)
                at = after
                continue
        out.append(char)
        at += 1
    return "".join(out)


def _indent(stack: list[bool]) -> str:
    return "  " * sum(stack)
