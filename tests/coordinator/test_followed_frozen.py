"""Push queries over tables that stop: they report it, wait, and go on with the table."""

from datetime import timedelta

import pytest

from holdfast.app import Service
from holdfast.errors import ReadError, SubscriptionLagged
from holdfast.runtime.spark.engine import Engine, Failure
from holdfast.serving.push.lag_watch import LagWatch, subscription_infos
from holdfast.serving.push.query import PushQuery

from .servers import Servers
from .service_calls import run
from .test_followed_objects import follow, received
from .test_frozen import SETUP, ids, pause, read

HOURS = 5
FOLLOWED = ["SUBSCRIBE bad;", "SELECT * FROM bad EMIT ALL;", "SELECT * FROM bad EMIT CHANGES;", "SUBSCRIBE deep;"]
JOINED = "SUBSCRIBE (SELECT deep.id AS id, deep.n AS d, good.n AS g FROM deep JOIN good ON good.id = deep.id);"


@pytest.fixture
def service(servers: Servers) -> Service:
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id))
    return service


def notice_of(push: PushQuery) -> tuple[str, bool] | None:
    received(push)
    return (push.notice.message, push.notice.current) if push.notice is not None else None


def watch(service: Service) -> LagWatch:
    return LagWatch(service._pushes.pushes, service._times.now, timedelta(hours=3))


@pytest.mark.parametrize("sql", [*FOLLOWED, JOINED])
def test_a_query_gets_a_notice_when_its_table_is_frozen_and_when_it_is_current_again(
    sql: str, service: Service
) -> None:
    push = follow(service, sql)
    assert notice_of(push) is None
    table = "deep" if "deep" in sql else "bad"
    big = pause(service)
    assert push.ready(), "its reader is woken"
    expected = read(service, f"SELECT * FROM {table};").notice
    assert expected is not None
    assert notice_of(push) == (expected, False)
    assert not push.ready()
    later = follow(service, sql)
    assert later.notice is not None
    assert later.notice.message == expected, "at the start, before the first row"
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3);")
    assert (received(push), notice_of(push)) == ([], (expected, False))
    run(service, f"RESUME {big};")
    assert push.ready()
    assert received(push) != []
    subject = '"DEEP", "GOOD" are' if "JOIN" in sql else f'materialized view "{table.upper()}" is'
    subject = subject if "deep" in sql else 'table "BAD" is'
    assert notice_of(push) == notice_of(later) == (f"{subject} current again", True)


def test_the_notice_of_a_failure_has_its_reason(
    service: Service, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    push, whole = follow(service, "SUBSCRIBE deep;"), Engine.run
    received(push)

    def failing(self, fragments, inputs, **options):
        streams = [i for i, fragment in enumerate(fragments) if "off" in {c.name for c in fragment.columns}]
        found = whole(self, fragments, inputs, **options)
        return [Failure("on purpose") if i in streams else rows for i, rows in enumerate(found)]

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "run", failing)
        servers.write(f"{servers.settings.service_id}_s", b'{"N":3}', key=b"a")
    message, current = notice_of(push) or ("", True)
    assert message.endswith(f"query {ids(service)['BIG']} upstream of it stopped: on purpose")
    assert not current


@pytest.mark.parametrize("sql", FOLLOWED)
def test_who_has_read_all_of_a_frozen_table_has_not_fallen_behind(sql: str, service: Service, servers: Servers) -> None:
    push = follow(service, sql)
    received(push)
    big = pause(service)
    received(push)
    servers.let_pass(HOURS * 3600)
    received(push)
    (info,) = subscription_infos([push], service._times.now())
    assert info.lag_ms == 0
    watch(service).check()
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3);")
    run(service, f"RESUME {big};")
    watch(service).check()
    assert received(push) != [], "what it missed comes at once, and does not end it either"
    watch(service).check()
    assert notice_of(push) is not None


def test_a_client_that_does_not_read_is_still_ended(service: Service, servers: Servers) -> None:
    push = follow(service, "SUBSCRIBE good WITH (SNAPSHOT = false);")
    received(push)
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3);")
    servers.let_pass(HOURS * 3600)
    watch(service).check()
    with pytest.raises(SubscriptionLagged):
        push.next(0)


def test_a_query_that_nobody_reads_lets_go_of_what_was_dropped(service: Service) -> None:
    push = follow(service, "SUBSCRIBE deep;")
    assert push.pinned_at is not None
    run(service, "DROP MATERIALIZED VIEW deep;")
    watch(service).check()
    assert push.pinned_at is None


def test_a_table_that_is_rebuilt_ends_its_queries(service: Service) -> None:
    """Its query reads tables, whose changes between two times are not stored for it."""
    push = follow(service, "SUBSCRIBE named;")
    received(push)
    run(service, f"PAUSE {ids(service)['NAMED']};")
    assert notice_of(push) is not None
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3);")
    assert received(push) == []
    run(service, f"RESUME {ids(service)['NAMED']};")
    assert push.ready()
    with pytest.raises(ReadError, match=r'table "NAMED" was rebuilt.*\nDETAIL: Its history starts at') as ended:
        push.next(0)
    assert ended.value.hint is not None
