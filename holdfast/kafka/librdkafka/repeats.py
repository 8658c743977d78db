"""Keeps librdkafka's log readable while Kafka is away: each client reports each failed attempt to connect."""

import logging
import re
import time
from collections.abc import Callable

SECONDS = 30.0
"""How long a line is not logged again."""
MOST_LINES = 1_000
VARYING = re.compile(r"#(consumer|producer)-\d+|\(after [^)]*\)|, \d+ identical error.*")
"""What differs between reports of the same problem: the client, and how long it took."""


class RepeatedLines(logging.Filter):
    """Drops lines that were logged lately, also by another client of the process."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._logged: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        line, now = VARYING.sub("", record.getMessage()), self._now()
        if now < self._logged.get(line, float("-inf")) + SECONDS:
            return False
        if len(self._logged) >= MOST_LINES:
            self._logged.clear()
        self._logged[line] = now
        return True
