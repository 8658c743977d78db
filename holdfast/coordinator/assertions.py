"""ASSERT TOPIC: whether a topic is as a statement says."""

import time

from holdfast.errors import AssertionFailed
from holdfast.kafka.admin import Admin
from holdfast.sql.bound import BoundAssertTopic

LOOK_AGAIN_SECONDS = 0.1


def assert_topic(asserted: BoundAssertTopic, admin: Admin) -> None:
    """Look at the topic until it is as it should be, or the time is over."""
    deadline = time.monotonic() + asserted.timeout_ms / 1_000
    while (problem := _difference(asserted, admin)) is not None:
        if time.monotonic() >= deadline:
            raise problem
        time.sleep(LOOK_AGAIN_SECONDS)


def _difference(asserted: BoundAssertTopic, admin: Admin) -> AssertionFailed | None:
    name = asserted.topic
    found = admin.describe([name]).get(name)
    if found is None:
        return AssertionFailed(f'topic "{name}" does not exist') if asserted.exists else None
    if not asserted.exists:
        return AssertionFailed(f'topic "{name}" exists')
    has = {"PARTITIONS": found.partitions, "REPLICAS": min(found.replicas, default=0)}
    wanted = {"PARTITIONS": asserted.partitions, "REPLICAS": asserted.replicas}
    wrong = [f"{key} is {has[key]}, not {value}" for key, value in wanted.items() if value not in (None, has[key])]
    if asserted.config:
        config = admin.config(name)
        wrong += [f"{key} is {config.get(key, 'not set')}, not {value}" for key, value in asserted.config.items()
                  if config.get(key) != value]  # fmt: skip
    if not wrong:
        return None
    return AssertionFailed(f'topic "{name}" is not as asserted', detail=f"{'; '.join(wrong)}.")
