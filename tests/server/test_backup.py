"""POST /backup begins a backup, keeps it going, and ends it."""

import httpx

from .fake import FakeService


def test_begin_keep_and_end(http: httpx.Client, service: FakeService) -> None:
    begun = http.post("/backup", json={})
    assert begun.status_code == 200
    told = begun.json()
    assert (told["id"], told["seconds"], told["files"]) == ("b1", 60.0, [])
    assert told["about"]["store_id"] == "s"
    assert http.post("/backup", json={"id": "b1"}).json() == {"id": "b1"}
    assert http.post("/backup", json={"id": "b1", "end": True}).json() == {"id": "b1"}
    assert service.backups.id is None
    gone = http.post("/backup", json={"id": "b1", "end": True})
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
