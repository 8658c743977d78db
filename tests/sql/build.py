"""Builds catalogs from SQL text as the server does: parse, bind, plan, encode, fold."""

from holdfast.catalog.fold import fold
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.planner.commands import commands_for
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

STREAM = """
CREATE STREAM views (id INT KEY, page STRING, user STRING, took DOUBLE, ts BIGINT, tags ARRAY<STRING>,
                     place STRUCT<city STRING, zip INT>)
  WITH (KAFKA_TOPIC='views', VALUE_FORMAT='JSON');
"""
TABLE = """
CREATE TABLE users (id STRING PRIMARY KEY, name STRING, age INT, paid DECIMAL(5, 2))
  WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON', PARTITIONS=2);
"""
COUNTS = "CREATE TABLE counts AS SELECT page, COUNT(*) AS n FROM views GROUP BY page;"
FAST = "CREATE STREAM fast AS SELECT * FROM views WHERE took < 1;"
EVERYTHING = STREAM + TABLE + COUNTS + FAST


def catalog_of(text: str, catalog: Catalog = EMPTY) -> Catalog:
    for number, parsed in enumerate(statements(text)):
        bound = bind(parsed.statement, catalog)
        catalog = fold(commands_for(bound, text=parsed.text, number=number), catalog)
    return catalog
