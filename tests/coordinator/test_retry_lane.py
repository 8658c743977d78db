"""Refusals of a topic or of a record: what stops, what is skipped, and what goes on."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from holdfast.config import Settings
from holdfast.coordinator import processing_log
from holdfast.coordinator.publishing import Publishing
from holdfast.errors import KafkaError, ReadError
from holdfast.kafka.lane import Lane
from holdfast.kafka.memory.topics import MemoryTopics
from holdfast.kafka.port import RecordRefused
from holdfast.names import QueryId, TopicName

from .outboxes import A, B, Outboxes, encode

Q1, Q2, Q3, OTHER = (QueryId(name) for name in ("Q1", "Q2", "Q3", "OTHER"))
QUERIES = {Q1: A, Q2: A, Q3: A, OTHER: B}
LARGE = "y" * 200


@pytest.fixture
def world(settings: Settings) -> Outboxes:
    """Three outboxes of one topic, which takes records of at most 100 bytes, and one of another."""
    made = Outboxes(settings, queries=QUERIES)
    made.broker.topics[A].config = {"max.message.bytes": "100"}
    return made


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[TopicName]:
    """The topics of each transaction that was tried."""
    found, publish = list[TopicName](), Lane.publish

    def counted(lane: Lane, store: Any, batch: Any) -> Any:
        found.extend({part.outgoing.topic for part in batch})
        return publish(lane, store, batch)

    monkeypatch.setattr(Lane, "publish", counted)
    return found


def refuse(world: Outboxes, topic: TopicName = A) -> None:
    world.broker.refusals[topic] = RecordRefused(f'topic "{topic}" cannot be written', topic=topic, lasting=True)


def start(world: Outboxes) -> Publishing:
    publishing = world.publishing()
    publishing.fence()
    publishing.recover()
    return publishing


def of(world: Outboxes, *values: str) -> list[str]:
    """Which of some values topic A has, in its order."""
    return [text for value in world.values(A) if (text := (value or b"").decode()) in values]


def not_encoded(rows: pa.Table, store: Any) -> pa.Table:
    if "bad" in rows.column("c0").to_pylist():
        raise ValueError("it is bad")
    return encode(rows, store)


@pytest.mark.parametrize("bad", [LARGE, "bad"])
def test_only_the_outbox_with_a_refused_record_stops(world: Outboxes, bad: str) -> None:
    world.encode = not_encoded
    world.commit(1, Q1=["1", bad, "1b"], Q2=["2"])
    world.commit(2, Q1=["3"], Q2=["4"], OTHER=["x"])
    publishing = start(world)
    publishing.publish_pending()
    assert publishing.failures().keys() == {Q1}
    assert (publishing.blocked(Q1) or "").startswith("blocked: ")
    assert publishing.blocked(Q2) is None
    assert publishing.problem == publishing.blocked(Q1)
    world.commit(3, Q1=["5"], Q2=["6"], Q3=["7"])
    publishing.publish_pending()
    assert sorted(world.values(A)) == [b"1", b"2", b"4", b"6", b"7"]
    assert of(world, "2", "4", "6") == ["2", "4", "6"]
    assert world.values(B) == [b"x"]

    world.broker.topics[A].config, world.encode = {}, encode
    publishing.retry(Q1)
    publishing.publish_pending()
    assert of(world, "1", bad, "1b", "3", "5") == ["1", bad, "1b", "3", "5"]
    assert (publishing.problem, publishing.failures(), world.store.pending()) == (None, {}, [])
    start(world).publish_pending()
    assert len(world.values(A)) == 9


def test_a_record_that_stays_refused_stops_its_outbox_again_and_also_after_a_restart(world: Outboxes) -> None:
    world.commit(1, Q1=[LARGE], Q2=["2"])
    publishing = start(world)
    for _ in range(2):
        publishing.publish_pending()
        assert publishing.failures().keys() == {Q1}
        publishing.failed(Q1)
        publishing.retry(Q1)
    publishing = start(world)
    publishing.publish_pending()
    assert publishing.failures().keys() == {Q1}
    assert world.values(A) == [b"2"]


def test_a_batch_that_is_too_large_is_no_record_that_is_too_large(
    world: Outboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers compare max.message.bytes with the batch in which a client sends some records."""
    publish = Lane.publish

    def batched(lane: Lane, store: Any, batch: Any) -> Any:
        if sum(part.outgoing.rows.num_rows for part in batch) > 3:
            raise RecordRefused("too large", topic=A, lasting=True, of_record=True)
        return publish(lane, store, batch)

    monkeypatch.setattr(Lane, "publish", batched)
    values = [str(n) for n in range(20)]
    world.commit(1, Q1=values)
    publishing = start(world)
    publishing.publish_pending()
    assert of(world, *values) == values
    assert (publishing.failures(), publishing.problem) == ({}, None)


def test_a_refusal_of_the_topic_fails_all_of_its_writers(world: Outboxes) -> None:
    refuse(world)
    world.commit(1, Q1=["1"], OTHER=["x"])
    publishing = start(world)
    publishing.publish_pending()
    assert publishing.failures().keys() == {Q1, Q2, Q3}
    assert world.values(B) == [b"x"]
    world.broker.refusals.clear()
    publishing.retry(Q2)
    world.commit(2, Q2=["2"])
    publishing.publish_pending()
    assert world.values(A) == [b"1", b"2"]
    assert publishing.problem is None


def test_a_query_that_skips_records_fails_when_the_topic_takes_none(world: Outboxes, sent: list[TopicName]) -> None:
    world.skips.update(QUERIES)
    refuse(world)
    world.commit(1, Q1=[str(n) for n in range(1000)])
    publishing = start(world)
    publishing.publish_pending()
    assert publishing.failures().keys() == {Q1, Q2, Q3}
    assert publishing.skipped() == []
    assert len(sent) == 2, "once in each lane"


def test_rows_that_a_statement_does_not_fit_are_not_skipped(world: Outboxes) -> None:
    def unfit(*_: Any) -> pa.Table:
        raise ReadError("the query failed", detail='Binder Error: Referenced column "c1" not found.')

    world.skips.add(Q1)
    world.encode = unfit
    world.commit(1, Q1=["1", "2"])
    publishing = start(world)
    publishing.publish_pending()
    assert Q1 in publishing.failures()
    assert publishing.skipped() == []
    world.encode = encode
    publishing.retry(Q1)
    publishing.publish_pending()
    assert world.values(A) == [b"1", b"2"]


def test_the_processing_log_is_tried_again_by_itself(settings: Settings) -> None:
    world = Outboxes(settings, queries={processing_log.QUERY: A})
    world.skips.add(processing_log.QUERY)
    refuse(world)
    world.commit(1, PROCESSING_LOG=["1"])
    publishing = start(world)
    publishing.publish_pending()
    assert (publishing.failures(), publishing.skipped()) == ({}, [])
    world.broker.refusals.clear()
    world.clock.advance(40.0)
    publishing.publish_pending()
    assert world.values(A) == [b"1"]


@pytest.mark.parametrize("bad", [LARGE, "bad"])
def test_refused_records_are_skipped_while_other_topics_are_served(
    world: Outboxes, sent: list[TopicName], bad: str
) -> None:
    world.encode = not_encoded
    world.skips.add(Q1)
    world.commit(1, Q1=["1", bad, "2", bad, bad, "3"], Q2=["x"])
    publishing = start(world)
    world.broker.refusals[B] = RecordRefused("busy", topic=B, lasting=False)
    world.commit(2, OTHER=["z"])
    publishing._publish()
    world.broker.refusals.clear()
    sent.clear()
    publishing.publish_pending()
    assert of(world, "1", "2", "3", "x") in (["1", "2", "3", "x"], ["1", "2", "x", "3"], ["x", "1", "2", "3"])
    assert [record.row for record in publishing.skipped()] == [1, 3, 4]
    assert sent.index(B) <= 2, "the turn is released between two attempts"
    assert (publishing.problem, world.store.pending()) == (None, [])


def test_a_skipped_record_is_known_after_a_kill_until_it_is_logged(world: Outboxes) -> None:
    world.skips.add(Q1)
    world.commit(1, Q1=["1", LARGE])
    start(world).publish_pending()
    for _ in range(2):
        publishing = start(world)
        [skipped] = publishing.skipped()
        assert (skipped.query, skipped.topic, skipped.time, skipped.row) == (Q1, A, 1, 1)
    publishing.logged([skipped])
    assert publishing.skipped() == []
    assert start(world).skipped() == []
    assert world.store.facts("skipped/") == {}


def test_a_record_that_was_not_skipped_before_a_kill_is_still_pending(
    world: Outboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.skips.add(Q1)
    world.commit(1, Q1=[LARGE])
    publishing, publish = start(world), Lane.publish

    def killed(lane: Lane, store: Any, batch: Any) -> Any:
        if any(part.skipped for part in batch):
            raise RuntimeError("the process dies here")
        return publish(lane, store, batch)

    with monkeypatch.context() as patched:
        patched.setattr(Lane, "publish", killed)
        with pytest.raises(RuntimeError):
            publishing.publish_pending()
    assert len(world.store.facts("skipped/")) == 1
    world.broker.topics[A].config = {}
    publishing = start(world)
    publishing.publish_pending()
    assert world.values(A) == [LARGE.encode()]
    assert (publishing.skipped(), world.store.facts("skipped/")) == ([], {})


def test_a_skip_whose_outcome_is_in_doubt_is_decided_by_its_marker(
    world: Outboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.skips.add(Q1)
    world.commit(1, Q1=[LARGE, "2"])
    publishing, publish = start(world), Lane.publish

    def cut_off(lane: Lane, store: Any, batch: Any) -> Any:
        ends = publish(lane, store, batch)
        if any(part.skipped for part in batch):
            raise RuntimeError("the answer is lost")
        return ends

    with monkeypatch.context() as patched:
        patched.setattr(Lane, "publish", cut_off)
        with pytest.raises(RuntimeError):
            publishing.publish_pending()
    publishing.publish_pending()
    assert world.values(A) == [b"2"]
    assert [record.row for record in publishing.skipped()] == [0]


def test_the_retry_lane_asks_for_no_ends_of_topics_that_it_gave_back(
    world: Outboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another lane may be publishing there: what is written is not yet what is published."""
    world.commit(1, Q1=[LARGE])
    publishing = start(world)
    publishing.publish_pending()
    asked, written = list[TopicName](), MemoryTopics.written

    def recorded(topics: MemoryTopics, partitions: Any) -> Any:
        wanted = list(partitions)
        asked.extend(topic for topic, _ in wanted)
        return written(topics, wanted)

    monkeypatch.setattr(MemoryTopics, "written", recorded)
    world.broker.refusals[B] = RecordRefused("busy", topic=B, lasting=False)
    world.commit(2, OTHER=["x"])
    publishing._publish()
    world.broker.refusals.clear()
    publishing.publish_pending()
    assert world.values(B) == [b"x"]
    assert A not in asked


class Killed(Exception):
    """The process ends before or after a transaction."""


@pytest.mark.parametrize("seed", range(60))
def test_every_row_is_published_once_in_order_or_logged_as_skipped(
    world: Outboxes, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever is refused, resumed, in doubt and killed. Q1 skips refused records, the other queries fail."""
    random = Random(seed)
    world.rows = random.choice([1, 2, 3, 50])
    world.skips.add(Q1)
    committed: dict[str, list[str]] = {query: [] for query in QUERIES}
    logged: set[tuple[int, int]] = set()
    kills, publish = [0.0], Lane.publish

    def killed(lane: Lane, store: Any, batch: Any) -> Any:
        if random.random() < kills[0]:
            raise Killed
        ends = publish(lane, store, batch)
        if random.random() < kills[0]:
            raise random.choice([Killed, KafkaError("the answer is lost")])
        return ends

    monkeypatch.setattr(Lane, "publish", killed)
    publishing = start(world)

    def step() -> Publishing:
        try:
            publishing.publish_pending()
        except Killed:
            return start(world)
        except KafkaError:
            pass
        return publishing

    sizes: dict[tuple[int, int], str] = {}
    for time in range(1, 40):
        rows = {}
        for query in random.sample(sorted(QUERIES), random.randint(0, 3)):
            texts = [f"{query}-{time}-{n}{random.choice(['', '', '', LARGE])}" for n in range(random.randint(1, 4))]
            rows[query], committed[query] = texts, committed[query] + texts
            if query == Q1:
                sizes |= {(time, n): text for n, text in enumerate(texts)}
        world.commit(time, **rows)
        world.broker.topics[A].config = random.choice([{}, {"max.message.bytes": "100"}])
        world.broker.refusals.clear()
        if random.random() < 0.2:
            topic = random.choice([A, B])
            world.broker.refusals[topic] = RecordRefused("no", topic=topic, lasting=random.random() < 0.5)
        kills[0] = random.choice([0.0, 0.2])
        publishing = step()
        if random.random() < 0.3:
            publishing.retry(random.choice(sorted(QUERIES)))
        if random.random() < 0.3:
            skipped = publishing.skipped()
            logged |= {(record.time, record.row) for record in skipped}
            publishing.logged(skipped)
        world.clock.advance(random.choice([0.0, 5.0, 40.0]))

    kills[0], world.broker.topics[A].config = 0.0, {}
    world.broker.refusals.clear()
    for query in QUERIES:
        publishing.retry(query)
    publishing.publish_pending()
    assert (world.store.pending(), publishing.problem) == ([], None)
    logged |= {(record.time, record.row) for record in publishing.skipped()}
    missing = {sizes[at] for at in logged}
    assert all(LARGE in text for text in missing)
    for query, topic in QUERIES.items():
        written = [(value or b"").decode() for value in world.values(topic)]
        of_query = [text for text in written if text.startswith(f"{query}-")]
        assert of_query == [text for text in committed[query] if text not in missing]
