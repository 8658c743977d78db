"""Golden SQL. Sources."""

from .programs import check, program, table_program


def test_a_table_over_a_topic_has_the_last_record_per_key():
    check("table_of_topic", table_program("USERS"))


def test_a_derived_stream_reads_the_rows_of_the_tick():
    first = "CREATE STREAM first AS SELECT id, amount FROM orders;"
    check("derived_stream", program(first + "CREATE STREAM second AS SELECT id, amount FROM first;"))
