"""The coordinator's pauses after failed rounds."""

from threading import Thread
from typing import Any

from holdfast.coordinator.activity import Activity
from holdfast.coordinator.coordinator import Coordinator
from holdfast.coordinator.intervals import Intervals
from holdfast.coordinator.requests import Requests
from holdfast.errors import KafkaError
from holdfast.wall_clock import ManualClock


class Rounds(Coordinator):
    """A coordinator whose rounds fail with `error`, or succeed when it is None."""

    error: Exception | None = None

    def __init__(self) -> None:
        self.clock = ManualClock()
        activity = Activity(self.clock, limit=60)
        self.requests = Requests(activity, seconds=60)
        nothing: Any = None
        parts = [nothing] * 8
        super().__init__(self.requests, *parts, self.clock, Intervals(), activity, lambda _error: None)

    def step(self, timeout: float = 0.0) -> bool:
        if self.error is not None:
            raise self.error
        return timeout > 0

    def pause_after(self, error: Exception | None) -> float:
        """How long a round takes that does nothing else."""
        self.error, before = error, self.clock.monotonic()
        self._round()
        return round(self.clock.monotonic() - before)


def test_the_pause_grows_while_the_problem_stays_the_same() -> None:
    rounds = Rounds()
    away, full = KafkaError("Kafka is away"), RuntimeError("the disk is full")
    assert [rounds.pause_after(away) for _ in range(7)] == [1, 2, 4, 8, 10, 10, 10]
    assert [rounds.pause_after(full) for _ in range(2)] == [1, 2]
    assert rounds.problem == "RuntimeError: the disk is full"
    assert rounds.pause_after(None) == 0
    assert rounds.problem is None
    assert rounds.pause_after(full) == 1


def test_requests_are_answered_during_a_pause() -> None:
    rounds = Rounds()
    rounds.requests.serve()
    answers: list[int] = []
    asking = Thread(target=lambda: answers.append(rounds.requests.ask("a number", lambda: 5)))
    asking.start()
    while rounds.requests._queue.empty():
        pass
    rounds.pause_after(KafkaError("Kafka is away"))
    asking.join(10)
    assert answers == [5]
