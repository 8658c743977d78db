"""A store that fails for good ends the server with its reason; one that fails for a moment does not."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import StoreEnded, StoreError
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.store.duckdb import open_store
from tests.server.local import ORDERS, TOTALS, LocalService, eventually, local_service


@contextmanager
def no_space() -> Iterator[None]:
    """Writes to files fail: none may grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fail_checkpoint(service: LocalService) -> Exception | None:
    """Run a checkpoint that cannot write, which DuckDB calls fatal."""
    core = service._store._core
    with core.write_lock, no_space():
        try:
            core.checkpoint(beyond=-1)
        except StoreError as error:
            return error
    return None


def test_a_fatal_error_of_the_store_ends_the_server_with_its_reason(engines: EnginePair, tmp_path: Path) -> None:
    service = LocalService(engines, data_dir=tmp_path)
    try:
        service.run(ORDERS + TOTALS).order(("a", 3))
        assert service.wait_failed(0) is None
        assert isinstance(fail_checkpoint(service), StoreEnded)
        failed = service.wait_failed(60)
        assert isinstance(failed, StoreEnded)
        assert "start the server again" in (failed.hint or "")
        assert eventually(lambda: not service.health().healthy)
    finally:
        service.stop()
    # Nothing that was committed is lost.
    store = open_store(tmp_path / "store")
    try:
        assert ("orders", 1) in {(end.topic, end.offset) for end in store.remap_ends()}
    finally:
        store.close()


def test_a_disk_that_is_full_for_a_moment_does_not_end_the_server(engines: EnginePair, tmp_path: Path) -> None:
    with local_service(engines, data_dir=tmp_path) as service:
        service.run(ORDERS + TOTALS).order(("a", 3))
        with no_space():
            service.write("orders", ("a", {"AMOUNT": 4}))
            assert eventually(lambda: service.coordinator.problem)
        assert eventually(lambda: service.rows("SELECT * FROM totals;") == [("a", 7)])
        assert service.wait_failed(0) is None
        assert eventually(lambda: service.health().healthy)
