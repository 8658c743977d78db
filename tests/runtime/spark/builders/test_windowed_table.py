"""Golden SQL: tables over windowed topics, and the count of the records that they drop."""

import pytest

from holdfast.runtime.program import UpsertWindows
from holdfast.runtime.window_expiry import dropped_sql, misfits_sql

from .programs import check, check_text, formatted, table_program

LAYOUTS = {
    "TUMBLING": "WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 MINUTE', RETENTION='1 HOUR'",
    "CHANGELOG": "WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 MINUTE', WINDOW_TOPIC='CHANGELOG', RETENTION='1 HOUR'",
    "SESSION": "WINDOW_TYPE='SESSION', RETENTION='1 HOUR'",
}
SQL = "CREATE TABLE w (id STRING PRIMARY KEY, n BIGINT) WITH (KAFKA_TOPIC='w', FORMAT='KAFKA', {});"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sql(layout: str):
    program = table_program("W", SQL.format(LAYOUTS[layout]))
    check(f"windowed_table_{layout.lower()}", program)
    action = program.stages[0].action
    assert isinstance(action, UpsertWindows)
    texts = (dropped_sql(action, "decoded"), misfits_sql(action, "records"))
    check_text(f"windowed_table_{layout.lower()}_dropped", "".join(f"{formatted(text)};\n" for text in texts))
