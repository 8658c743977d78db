"""A hold in a running service: what it keeps is there after a restart, and a subscription goes on from it."""

import time

from holdfast.app import Service
from holdfast.config import Settings
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from holdfast.sql.bind import bind
from holdfast.sql.bound_hold import BoundAdvanceHold
from holdfast.sql.parse import statements

from .running import followed, rows, run, wait

SETUP = (
    "CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{0}_t', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
)


def test_a_subscription_goes_on_from_its_hold_after_a_restart(settings: Settings, sessions: Sessions) -> None:
    name, folder = str(settings.service_id), settings.data_dir / "store"
    service = Service(settings, sessions, open_store(folder))
    try:
        run(service, SETUP.format(name) + "INSERT INTO t (id, n) VALUES ('a', 1);")
        wait(lambda: rows(service, "t"), {("a", 1)})
        run(service, "CREATE HOLD h ON t; CREATE HOLD gone ON t; DROP HOLD gone;")
        (held,) = service.holds()
        run(service, "INSERT INTO t (id, n) VALUES ('b', 2);")
        wait(lambda: rows(service, "t"), {("a", 1), ("b", 2)})
        # Longer than the window of a table: without the hold the change would be forgotten.
        time.sleep(2.5)
    finally:
        service.stop()

    service = Service(settings, sessions, open_store(folder))
    try:
        assert [(status.hold.name, status.at) for status in service.holds()] == [("H", held.at)]
        run(service, "INSERT INTO t (id, n) VALUES ('b', 3);")
        wait(lambda: rows(service, "t"), {("a", 1), ("b", 3)})
        found = followed(service, "SUBSCRIBE t WITH (HOLD = h);", 4)
        assert [row[1:4] for row in found] == [(1, "a", 1), (1, "b", 2), (-1, "b", 2), (1, "b", 3)]
        bound = bind(next(iter(statements(f"ALTER HOLD h ADVANCE TO {found[1][0]};"))).statement, service.catalog, {})
        assert isinstance(bound, BoundAdvanceHold)
        assert service.advance_hold(bound) == found[1][0]
        again = followed(service, "SUBSCRIBE t WITH (HOLD = h, SNAPSHOT = false);", 2)
        assert [row[1:4] for row in again] == [(-1, "b", 2), (1, "b", 3)]
        run(service, "DROP TABLE t CASCADE;")
        assert (service.holds(), dict(service.catalog.holds)) == ([], {})
    finally:
        service.stop()
