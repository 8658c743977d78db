"""ASSERT TOPIC: compares a topic with what a statement asserts."""

from holdfast.errors import AssertionFailed
from holdfast.kafka.port import TopicAdmin
from holdfast.sql.bind.assert_topic import BoundAssertTopic
from holdfast.wall_clock import WallClock

POLL_SECONDS = 0.1


def assert_topic(asserted: BoundAssertTopic, admin: TopicAdmin, clock: WallClock) -> None:
    """Poll a topic until it is as asserted; after the timeout, raise an error that shows the difference."""
    deadline = clock.monotonic() + asserted.timeout_ms / 1_000
    while (problem := _difference(asserted, admin)) is not None:
        if clock.monotonic() >= deadline:
            raise problem
        clock.sleep(POLL_SECONDS)


def _difference(asserted: BoundAssertTopic, admin: TopicAdmin) -> AssertionFailed | None:
    name = asserted.topic
    found = admin.describe([name]).get(name)
    if found is None:
        return AssertionFailed(f'topic "{name}" does not exist') if asserted.exists else None
    if not asserted.exists:
        return AssertionFailed(f'topic "{name}" exists')
    actual = {"PARTITIONS": found.partitions, "REPLICAS": min(found.replicas, default=0)}
    expected = {"PARTITIONS": asserted.partitions, "REPLICAS": asserted.replicas}
    wrong = [
        f"{key} is {actual[key]}, not {value}" for key, value in expected.items() if value not in (None, actual[key])
    ]
    if asserted.config:
        config = admin.config(name)
        wrong += [f"{key} is {config.get(key, 'not set')}, not {value}" for key, value in asserted.config.items()
                  if config.get(key) != value]  # fmt: skip
    if not wrong:
        return None
    return AssertionFailed(f'topic "{name}" is not as asserted', detail=f"{'; '.join(wrong)}.")
