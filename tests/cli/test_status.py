import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import app
from holdfast.server.serve import listen, running
from tests.server.fake import ORDERS, TOTALS, FakeService, Health, QueryInfo


class Failing(FakeService):
    """A service whose queries have failed."""

    state_told = "RUNNING"
    reason: str | None = None

    def queries(self) -> list[QueryInfo]:
        return [replace(query, state=self.state_told, reason=self.reason, done=0.5) for query in super().queries()]


@pytest.fixture
def service() -> Failing:
    service = Failing()
    service.run(ORDERS + TOTALS)
    return service


@pytest.fixture
def status(service: Failing) -> Iterator[object]:
    with running(service, listen(service.settings)) as server:
        yield lambda *more: CliRunner().invoke(app, ["status", "--server", server.url, *more])


def test_all_is_well(status) -> None:
    result: Result = status()
    assert result.exit_code == 0
    assert "Health         well" in result.stdout
    assert "Objects        1 streams, 1 tables" in result.stdout
    assert "CTAS_TOTALS_1 | RUNNING | TOTALS" in result.stdout


def test_a_query_that_builds_is_well_too(status, service: Failing) -> None:
    service.state_told = "BUILDING"
    result = status()
    assert result.exit_code == 0
    assert "BUILDING 50%" in result.stdout


def test_what_is_not_well_is_told(status, service: Failing) -> None:
    service.state_told, service.reason = "ERROR", "the topic was made anew"
    result = status()
    assert result.exit_code == 2
    assert "CTAS_TOTALS_1: the topic was made anew" in result.stdout
    service.state_told, service.reason = "RUNNING", None
    service.state = Health(False, {"kafka": "away"})
    result = status()
    assert result.exit_code == 2
    assert "kafka: away" in result.stdout


def test_as_json(status, service: Failing) -> None:
    service.state_told, service.reason = "ERROR", "no"
    result = status("--json")
    told = json.loads(result.stdout)
    assert told["well"] is False
    assert told["queries"] == [
        {"id": "CTAS_TOTALS_1", "state": "ERROR", "done": 0.5, "writes": "TOTALS", "reason": "no"}
    ]
    assert (told["version"], told["streams"], told["healthy"]) == ("1.2.3", 1, True)


def test_no_server() -> None:
    assert CliRunner().invoke(app, ["status", "--server", "http://127.0.0.1:1"]).exit_code == 1
