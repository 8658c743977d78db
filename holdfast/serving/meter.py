"""What a push query has cost and sent so far."""

import time


class Meter:
    """Of one query. The server counts; others read."""

    def __init__(self) -> None:
        self.started_ms = time.time_ns() // 1_000_000
        self.rows = 0
        """Rows that were sent."""
        self.bytes = 0
        """Bytes that were handed to the connection."""
        self.buffered = 0
        """Bytes that the server holds for the client: what was read and written and not yet taken."""
        self.peak_buffered = 0

    def buffer(self, size: int) -> None:
        self.buffered = size
        self.peak_buffered = max(self.peak_buffered, size)

    def sent(self, size: int) -> None:
        self.bytes += size
