import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import app
from holdfast.service.status import Health, QueryInfo
from holdfast.version import VERSION
from tests.server.local import LocalService


class Reported:
    """What the service says of its queries."""

    def __init__(self, service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.reason = "RUNNING", None
        self._queries = service.queries
        monkeypatch.setattr(service, "queries", self.queries)

    def queries(self) -> list[QueryInfo]:
        return [replace(query, state=self.state, reason=self.reason, done=0.5) for query in self._queries()]


@pytest.fixture
def reported(service: LocalService, monkeypatch: pytest.MonkeyPatch) -> Reported:
    return Reported(service, monkeypatch)


@pytest.fixture
def status(url: str):
    return lambda *more: CliRunner().invoke(app, ["status", "--server", url, *more])


def test_all_is_well(status) -> None:
    result: Result = status()
    assert result.exit_code == 0
    assert "Health         OK" in result.stdout
    assert "Objects        2 streams, 1 tables" in result.stdout
    assert "CTAS_TOTALS_3 | RUNNING | TOTALS" in result.stdout


def test_a_query_that_builds_is_well_too(status, reported: Reported) -> None:
    reported.state = "BUILDING"
    result = status()
    assert result.exit_code == 0
    assert "BUILDING 50%" in result.stdout


def test_problems_are_reported(
    status, reported: Reported, service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported.state, reported.reason = "ERROR", "the topic was recreated"
    result = status()
    assert result.exit_code == 2
    assert "CTAS_TOTALS_3: the topic was recreated" in result.stdout
    reported.state, reported.reason = "RUNNING", None
    monkeypatch.setattr(service, "health", lambda: Health(False, {"kafka": "away"}))
    result = status()
    assert result.exit_code == 2
    assert "kafka: away" in result.stdout


def test_as_json(status, reported: Reported) -> None:
    reported.state, reported.reason = "ERROR", "no"
    result = status("--json")
    shown = json.loads(result.stdout)
    assert shown["well"] is False
    assert shown["queries"] == [
        {"id": "CTAS_TOTALS_3", "state": "ERROR", "done": 0.5, "writes": "TOTALS", "reason": "no"}
    ]
    assert (shown["version"], shown["streams"], shown["healthy"]) == (VERSION, 2, True)


def test_no_server() -> None:
    assert CliRunner().invoke(app, ["status", "--server", "http://127.0.0.1:1"]).exit_code == 1
