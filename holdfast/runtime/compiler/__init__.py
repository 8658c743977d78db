"""Compiles expressions: resolves functions, infers types, and renders SQL for Spark and DuckDB."""
