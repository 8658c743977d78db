from threading import Barrier, Thread

import pytest

from holdfast.serving.push.single_flight import SingleFlight


def test_who_asks_at_the_same_time_gets_the_same():
    shared: SingleFlight[list[int]] = SingleFlight(4)
    together, found, made = Barrier(8), [], []

    def make() -> list[int]:
        made.append(1)
        return []

    def ask() -> None:
        together.wait()
        found.append(shared.get("key", make))

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert all(each is found[0] for each in found)


def test_an_error_is_not_kept():
    shared: SingleFlight[int] = SingleFlight(4)

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        shared.get("key", fail)
    assert shared.get("key", lambda: 5) == 5


def test_only_the_last_are_kept():
    shared: SingleFlight[int] = SingleFlight(2)
    for key in (1, 2, 1, 3):
        shared.get(key, lambda key=key: key)
    assert shared.get(1, lambda: 10) == 1
    assert shared.get(2, lambda: 20) == 20


def test_what_is_cached_is_found_without_waiting():
    shared: SingleFlight[int] = SingleFlight(2)
    assert shared.found("key") is None

    def make() -> int:
        assert shared.found("key") is None, "it is being computed"
        return 5

    shared.get("key", make)
    assert shared.found("key") == 5
