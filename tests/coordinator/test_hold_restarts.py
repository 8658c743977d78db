"""Holds across outages: a server that was down, a statement in doubt, an advance that meets a drop."""

import pytest

from holdfast.app import Service
from holdfast.errors import CommandInDoubt, KafkaError, ReadError
from holdfast.names import CollectionId, HoldId
from holdfast.runtime.store.port import Time

from .servers import Servers
from .service_calls import run

SETUP = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO t (id, n) VALUES ('a', 1);
"""
HOUR = 3_600.0


def at(service: Service, name: str = "H") -> int:
    return next(status.at for status in service.holds() if status.hold.name == name)


def test_the_time_that_a_server_was_down_does_not_count_toward_max_lag_at_first(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP)
    run(service, "CREATE HOLD h ON t AT now() WITH (MAX LAG = '1h');")
    placed = at(service)
    servers.stop()
    servers.clock.advance(5 * HOUR)
    service = servers.start()
    servers.let_pass(60.0)
    assert at(service) == placed
    # Time that passes while the server runs counts.
    grace = service.settings.hold_grace.total_seconds()
    servers.let_pass(grace)
    servers.let_pass()
    assert at(service) > placed
    [status] = service.holds()
    assert status.advanced >= 1


def test_a_server_that_ends_before_its_clients_could_connect_forgives_the_same_time_again(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP)
    run(service, "CREATE HOLD h ON t AT now() WITH (MAX LAG = '1h');")
    placed = at(service)
    servers.stop()
    servers.clock.advance(4 * HOUR)
    service = servers.start()
    servers.let_pass(120.0)
    service = servers.start()
    servers.let_pass(60.0)
    assert at(service) == placed
    servers.let_pass(service.settings.hold_grace.total_seconds())
    servers.let_pass()
    assert at(service) > placed
    # That time is forgiven once: now a grace of the next start has nothing to forgive.
    placed = at(service)
    service = servers.start()
    servers.let_pass(60.0)
    assert at(service) > placed


def test_a_hold_that_lags_while_the_server_runs_is_advanced_without_grace(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP)
    run(service, "CREATE HOLD h ON t AT now() WITH (MAX LAG = '1m');")
    placed = at(service)
    servers.let_pass(120.0)
    servers.let_pass()
    assert at(service) > placed


@pytest.mark.parametrize("written", [True, False])
def test_a_create_hold_in_doubt_keeps_its_time_if_it_was_written(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    service = servers.start()
    run(service, SETUP)
    producer = service._log._producer
    commit = producer.commit

    def cut_off() -> None:
        if written:
            commit()
        raise KafkaError("Kafka is away")

    with monkeypatch.context() as patched:
        patched.setattr(producer, "commit", cut_off)
        with pytest.raises(CommandInDoubt):
            run(service, "CREATE HOLD h ON t AT now();")
    [stored] = service._store.holds().values()
    service.run_until_idle()
    if written:
        assert at(service) == stored.at
        servers.let_pass()
        assert service._store.frontier(CollectionId("T")).since <= stored.at
    else:
        assert service.holds() == []
        assert service._store.holds() == {}


def test_an_advance_that_meets_a_drop_fails_alone(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP)
    run(service, "CREATE HOLD h ON t AT now(); CREATE HOLD other ON t AT now();")
    dropped, other = (service.catalog.hold(name) for name in ("H", "OTHER"))
    run(service, "DROP HOLD h;")
    to = Time(at(service, "OTHER") + 1)
    refused = service._store.move_holds({dropped.id: to, other.id: to, HoldId("never"): to})
    assert set(refused) == {dropped.id, "never"}
    assert at(service, "OTHER") == to
    with pytest.raises(ReadError, match="hold"):
        service._holds.advance(dropped, None)
