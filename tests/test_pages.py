"""Every page that shows how something is used is followed, from top to bottom, with a server of its own."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.app import Service
from holdfast.config import Settings, load
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.names import ServiceId
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from holdfast.server.http.server import listen, running
from tests.pages import Reader

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    "readme": 6,
    "quickstart": 10,
    "streams": 13,
    "tables": 15,
    "windows": 12,
    "views": 7,
    "user-functions": 6,
    "pull-queries": 11,
    "push-queries": 6,
    "subscribe": 5,
    "system-tables": 3,
    "client": 8,
    "python-streams": 9,
    "holds": 6,
    "indexes": 7,
    "formats": 8,
    "operations": 2,
}
"""The pages, and how many of their examples are run at the least."""


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker without the topics of other tests: pages call theirs as a reader would."""
    started = EmbeddedBroker(load({"data_dir": tmp_path_factory.mktemp("pages")}, environment={}))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def own_settings(own_broker: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Settings]:
    own = load({"data_dir": tmp_path / "data", "http_port": 0}, environment={}).at_kafka(own_broker.bootstrap)
    settings = replace(own, service_id=ServiceId(request.node.callspec.id))
    yield settings
    admin = Admin(settings)
    admin.delete(*(topic for topic in admin.topics() if not topic.startswith("_")))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed(
    page: str,
    own_settings: Settings,
    sessions: Sessions,
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    # Test drivers of topologies use the Spark of the tests, as a process has only one.
    monkeypatch.setattr("holdfast.streams.topology_test_driver.shared_engine", lambda: engine)
    service = Service(own_settings, sessions, open_store(own_settings.data_dir / "store"), KafkaCluster(own_settings))
    try:
        with running(service, listen(own_settings)) as server:
            reader = Reader(server.url, str(own_settings.kafka))
            reader.follow(ROOT / "README.md" if page == "readme" else DOCS / f"{page}.md")
    finally:
        service.stop()
    assert reader.ran >= PAGES[page]


def test_the_pages_that_are_made_from_the_code_have_all_of_it() -> None:
    sys.path.insert(0, str(DOCS))
    from reference import page

    from holdfast.errors import HoldfastError, UnknownColumn
    from holdfast.runtime.functions.registry import functions
    from holdfast.sql.syntax.synopsis import synopses

    statements, function_list, errors = page("statements.md"), page("functions.md"), page("errors.md")
    squeezed = " ".join(statements.split())
    assert all(each.text in squeezed for each in synopses())
    assert all(f"### {name}\n" in function_list for name in functions())
    assert "`UnknownColumn` | 42703 |" in errors
    assert "`RowRefused`" in errors
    assert UnknownColumn.__doc__ is not None
    assert UnknownColumn.__doc__ in errors
    assert all(
        f"`{kind.__name__}`" in errors
        for kind in HoldfastError.__subclasses__()
        if kind.__module__.startswith("holdfast.errors")
    )
