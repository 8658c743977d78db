"""The log while Kafka is away has each problem once in a while, not once for each attempt of each client."""

import logging

from holdfast.kafka.librdkafka.repeats import SECONDS, RepeatedLines


def line(text: str) -> logging.LogRecord:
    return logging.LogRecord("client", logging.ERROR, "", 0, "%s", (text,), None)


def failed(client: str, millis: int) -> logging.LogRecord:
    return line(
        f"FAIL [holdfast#{client}] [thrd:bootstrap]: Connect to 127.0.0.1:1 failed: refused (after {millis}ms in state)"
    )


def test_a_problem_is_logged_once_for_all_clients_and_again_after_a_while() -> None:
    now = 0.0
    lines = RepeatedLines(lambda: now)
    assert lines.filter(failed("producer-1", 0))
    assert not lines.filter(failed("producer-1", 3))
    assert not lines.filter(failed("consumer-7", 0))
    assert lines.filter(line("FAIL [holdfast#producer-1]: authentication failed"))
    now = SECONDS
    assert lines.filter(failed("consumer-7", 0))
    assert not lines.filter(failed("producer-1", 0))
