"""Holds over /ksql."""

import httpx

from tests.server.local import LocalService


def test_statements_about_holds(http: httpx.Client, service: LocalService) -> None:
    service.run(
        "CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    (made,) = http.post("/ksql", json={"ksql": "CREATE HOLD h ON t;"}).json()
    (before,) = service.holds()
    service.clock.advance(10)
    to = before.at + 8_000
    statements = f"ALTER HOLD h ADVANCE TO {to}; SHOW HOLDS; ALTER HOLD h RENAME TO g; DROP HOLD g;"
    moved, listed, renamed, dropped = http.post("/ksql", json={"ksql": statements}).json()
    assert made["commandId"] == "hold/`H`/create"
    assert moved["commandStatus"]["message"] == f"Hold H is at {to}."
    (hold,) = listed["holds"]
    assert hold == {
        "id": hold["id"], "name": "H", "on": ["T"], "at": to,
        "lagMs": hold["lagMs"], "maxLagMs": 10_800_000, "pinnedRows": 0, "pinnedBytes": 0,
        "advanced": 0, "reason": None,
    }  # fmt: skip
    assert hold["lagMs"] >= 1_500
    assert (renamed["commandId"], dropped["commandId"]) == ("hold/`H`/alter", "hold/`G`/drop")
    assert not service.catalog.holds
