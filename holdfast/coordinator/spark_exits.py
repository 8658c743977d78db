"""What follows when Spark's process ends while ticks run: smaller reads, and then each query alone."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.coordinator.read_limits import ReadLimits
from holdfast.errors import SparkRestarted

MAX_EXITS = 2
"""After this many exits in a row, queries run alone: the one during which Spark's process ends again is at fault."""


class SparkExits:
    """Counts the exits of Spark's process since a tick was last committed. On the coordinator's thread.

    Ticks and backfill slices each have their own count.
    """

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._count = 0

    @property
    def isolate(self) -> bool:
        """Whether to run each query alone."""
        return self._count >= MAX_EXITS

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count an exit that ends the block; a block that succeeds ends the count, and reads may grow again.

        An exit beside a read of a client says nothing about the block. After some of those, reads are refused.
        """
        try:
            yield
        except SparkRestarted as error:
            if error.beside_read:
                raise
            self._count += 1
            if self.isolate:
                self._limits.shrink()
            raise
        self._count = 0
        self._limits.grow()
