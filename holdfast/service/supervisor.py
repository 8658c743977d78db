"""Detects failures that stop the server."""

from threading import Event

from holdfast.errors import BrokerEnded, HoldfastError, ServiceTaken, SparkEnded
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.runtime.spark.session import Sessions


class Supervisor:
    """Watches the processes that the server needs, and records the error that stops it. Thread-safe."""

    def __init__(self, sessions: Sessions, broker: EmbeddedBroker | None) -> None:
        self._sessions, self._broker = sessions, broker
        self._failed = Event()
        self._failure: HoldfastError | None = None

    def wait_failed(self, timeout: float) -> HoldfastError | None:
        """The error that stops the server; None if nothing fails within the timeout."""
        if self._sessions.is_lost:
            self.fail(SparkEnded())
        if self._broker is not None and not self._broker.alive:
            self.fail(BrokerEnded(self._broker.log_file))
        return self._failure if self._failed.wait(timeout) else None

    def fail(self, error: HoldfastError) -> None:
        """Stop the server. The first error is its reason: others may follow from it."""
        self._failure = self._failure or error
        self._failed.set()

    def lose_lease(self) -> None:
        self.fail(ServiceTaken("another server has taken this service id", hint="Stop one of the two."))
