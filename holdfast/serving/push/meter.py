"""Counts what a push query has sent and buffered."""


class Meter:
    """The counters of one push query. Written by its sender, read by others."""

    def __init__(self, started_ms: int) -> None:
        self.started_ms = started_ms
        self.rows = 0
        """Rows sent."""
        self.bytes = 0
        """Bytes handed to the connection."""
        self.buffered = 0
        """Bytes that the server holds for the client: read or encoded, but not yet sent."""
        self.peak_buffered = 0

    def buffer(self, size: int) -> None:
        self.buffered = size
        self.peak_buffered = max(self.peak_buffered, size)

    def sent(self, size: int) -> None:
        self.bytes += size
