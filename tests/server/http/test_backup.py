"""POST /backup begins a backup, keeps it going, and ends it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.server.http.server import listen, running
from tests.server.local import LocalService, local_service


@pytest.fixture
def service(engines: EnginePair, tmp_path: Path) -> Iterator[LocalService]:
    """A service with a store on disk."""
    with local_service(engines, data_dir=tmp_path) as started:
        yield started


@pytest.fixture
def url(service: LocalService) -> Iterator[str]:
    with running(service, listen(service.settings)) as server:
        yield server.url


def test_begin_keep_and_end(http: httpx.Client, service: LocalService) -> None:
    begun = http.post("/backup", json={})
    assert begun.status_code == 200
    cut = begun.json()
    id_ = cut["id"]
    assert cut["seconds"] == 60.0
    assert all((service.settings.data_dir / file["source"]).exists() for file in cut["files"])
    assert cut["about"]["store_id"] == service._store.id
    assert http.post("/backup", json={"id": id_}).json() == {"id": id_}
    assert http.post("/backup", json={"id": id_, "end": True}).json() == {"id": id_}
    assert not service.backups.keep_alive(id_)
    gone = http.post("/backup", json={"id": id_, "end": True})
    assert (gone.status_code, gone.json()["error_code"]) == (404, 40400)


def test_a_second_one_is_refused(http: httpx.Client) -> None:
    http.post("/backup", json={})
    second = http.post("/backup", json={})
    assert (second.status_code, second.json()["error_code"]) == (400, 40001)
    assert "another backup" in second.json()["message"]


def test_bad_requests(http: httpx.Client) -> None:
    assert http.post("/backup", json={"id": 5}).status_code == 400
    assert http.post("/backup", content=b"no").status_code == 400
    assert http.post("/backup", json={}, headers={"origin": "http://elsewhere"}).status_code == 403
    assert http.get("/backup").status_code == 405
