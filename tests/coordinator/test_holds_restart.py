"""A hold in a running service: what it keeps is there after a restart, and a subscription goes on from it."""

from holdfast.sql.bind.hold import BoundAdvanceHold
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

from .servers import Servers
from .service_calls import followed, rows, run

SETUP = (
    "CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{0}_t', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
)


def test_a_subscription_goes_on_from_its_hold_after_a_restart(servers: Servers) -> None:
    name = str(servers.settings.service_id)
    service = servers.start()
    run(service, SETUP.format(name) + "INSERT INTO t (id, n) VALUES ('a', 1);")
    assert rows(service, "t") == {("a", 1)}
    run(service, "CREATE HOLD h ON t; CREATE HOLD gone ON t; DROP HOLD gone;")
    (held,) = service.holds()
    run(service, "INSERT INTO t (id, n) VALUES ('b', 2);")
    assert rows(service, "t") == {("a", 1), ("b", 2)}
    # Longer than the window of a table: without the hold the change would be forgotten.
    servers.let_pass(2.5)

    service = servers.start()
    assert [(status.hold.name, status.at) for status in service.holds()] == [("H", held.at)]
    run(service, "INSERT INTO t (id, n) VALUES ('b', 3);")
    assert rows(service, "t") == {("a", 1), ("b", 3)}
    found = followed(service, "SUBSCRIBE t WITH (HOLD = h);", 4)
    assert [row[1:4] for row in found] == [(1, "a", 1), (1, "b", 2), (-1, "b", 2), (1, "b", 3)]
    bound = bind(next(iter(statements(f"ALTER HOLD h ADVANCE TO {found[1][0]};"))).statement, service.catalog, {})
    assert isinstance(bound, BoundAdvanceHold)
    assert service.advance_hold(bound) == found[1][0]
    again = followed(service, "SUBSCRIBE t WITH (HOLD = h, SNAPSHOT = false);", 2)
    assert [row[1:4] for row in again] == [(-1, "b", 2), (1, "b", 3)]
    run(service, "DROP TABLE t CASCADE;")
    assert (service.holds(), dict(service.catalog.holds)) == ([], {})
