"""Holds over /ksql."""

import httpx

from .fake import FakeService


def test_statements_about_holds(http: httpx.Client, service: FakeService) -> None:
    service.run(
        "CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    statements = "CREATE HOLD h ON t; ALTER HOLD h ADVANCE TO 9; SHOW HOLDS; ALTER HOLD h RENAME TO g; DROP HOLD g;"
    made, moved, listed, renamed, dropped = http.post("/ksql", json={"ksql": statements}).json()
    assert made["commandId"] == "hold/`H`/create"
    assert moved["commandStatus"]["message"] == "Hold H is at 9."
    (hold,) = listed["holds"]
    assert hold == {
        "id": hold["id"], "name": "H", "on": ["T"], "at": 5,
        "lagMs": 1500, "maxLagMs": 10_800_000, "pinnedRows": 7, "pinnedBytes": 700,
        "advanced": 1, "reason": "it lagged",
    }  # fmt: skip
    assert (renamed["commandId"], dropped["commandId"]) == ("hold/`H`/alter", "hold/`G`/drop")
    assert not service.catalog.holds
