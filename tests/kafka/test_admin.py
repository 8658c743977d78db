import time
from collections.abc import Mapping

import pytest

from holdfast.errors import KafkaError
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.port import TopicSpec

from .producers import open_transaction, write


def test_topics_are_described_with_their_ids_and_missing_ones_left_out(admin, new_topic):
    one, two = new_topic(1), new_topic(3)
    described = admin.describe([one, two, "no_such_topic"])
    assert {name: topic.partitions for name, topic in described.items()} == {one: 1, two: 3}
    assert described[one].id != described[two].id
    assert {one, two} <= set(admin.topics())
    assert admin.exists(one)
    assert not admin.exists("no_such_topic")


def test_creating_again_is_fine_only_with_the_same_partitions(admin, new_topic):
    name = new_topic(2)
    admin.create(TopicSpec(name=name, partitions=2))
    with pytest.raises(KafkaError, match="exists with a different number of partitions") as raised:
        admin.create(TopicSpec(name=name, partitions=5))
    assert raised.value.detail == "It has 2, not 5."


def test_a_recreated_and_a_deleted_topic_are_noticed(admin, new_topic):
    kept, recreated, gone = new_topic(), new_topic(), new_topic()
    ids = {name: topic.id for name, topic in admin.describe([kept, recreated, gone]).items()}
    admin.delete(recreated, gone, "no_such_topic")
    admin.create(TopicSpec(name=recreated))
    changed = admin.changes(ids)
    assert set(changed) == {recreated, gone}
    assert "recreated" in changed[recreated].message
    assert ids[recreated] in changed[recreated].detail
    assert "deleted" in changed[gone].message


def test_ends_are_last_stable_offsets(admin, settings, new_topic):
    topic = new_topic()
    write(settings, topic, b"1", b"2")
    producer = open_transaction(settings, topic, [b"3"], id="ends")
    assert admin.ends([(topic, 0)]) == {(topic, 0): 2}
    assert admin.written([(topic, 0)]) == {(topic, 0): 3}
    producer.commit_transaction()
    # A commit is decided when it returns; its markers, and with them the end, come some milliseconds later.
    deadline = time.monotonic() + 5
    while admin.ends([(topic, 0)]) != {(topic, 0): 4}:
        assert time.monotonic() < deadline
    assert admin.starts([(topic, 0)]) == {(topic, 0): 0}


def test_offsets_at_a_time_are_of_the_first_record_that_is_not_older(admin, settings, new_topic):
    topic = new_topic()
    for timestamp in (1_000, 3_000, 2_000):
        write(settings, topic, b"x", timestamp=timestamp)
    place = (topic, 0)
    found = [admin.offsets_at([place], time) for time in (0, 1_000, 1_001, 3_000, 3_001)]
    assert found == [{place: 0}, {place: 0}, {place: 1}, {place: 1}, {}]


def test_a_refused_name_is_reported(admin):
    with pytest.raises(KafkaError, match='topic "no/slash" cannot be created'):
        admin.create(TopicSpec(name="no/slash"))


def test_an_unreachable_kafka_is_reported_with_a_hint(settings, monkeypatch):
    monkeypatch.setattr("holdfast.kafka.librdkafka.admin.SECONDS", 1.0)
    with pytest.raises(KafkaError) as raised:
        Admin(settings.at_kafka("127.0.0.1:1")).topics()
    assert "--kafka" in (raised.value.hint or "")


def test_offsets_are_known_again_after_kafka_was_away(admin, new_topic, broker):
    topic = (new_topic(), 0)
    for _ in range(3):
        assert admin.ends([topic]) == {topic: 0}
        # Longer than the broker's session, so that its partitions get a leader again.
        with broker.suspended():
            time.sleep(4.5)
    assert ends_once_there(admin, topic) == {topic: 0}


def ends_once_there(admin: Admin, topic: tuple[str, int]) -> Mapping[tuple[str, int], int]:
    """The ends of a topic; its partition may have no leader for some seconds."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return admin.ends([topic])
        except KafkaError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
