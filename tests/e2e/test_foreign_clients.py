"""Clients of other authors: they create, insert, pull, push and close, over the network.

- Python: `ksqldb` 1.0.1 of PyPI, a development dependency; its queries and inserts go over HTTP/2.
- Node: `ksqldb-client` 1.0.5 of npm, installed by the test; skipped where npm or its registry is not available.

ksqlDB's own Java client is not in Maven's central registry.
"""

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from ksqldb import KSQLdbClient

from holdfast.app import Service
from holdfast.config import Settings
from holdfast.server.http.server import listen, running

NODE_CLIENT = "ksqldb-client@1.0.5"
SECONDS = 60.0
T = TypeVar("T")

CREATE = """
CREATE STREAM visits (who STRING KEY, page STRING, ms INT)
  WITH (KAFKA_TOPIC='{0}_visits', VALUE_FORMAT='JSON', PARTITIONS=1);
"""
COUNT = "CREATE TABLE per_page AS SELECT page, COUNT(*) AS visits, SUM(ms) AS ms FROM visits GROUP BY page;"
PULL = "SELECT page, visits, ms FROM per_page WHERE page = 'home';"
PUSH = "SELECT page, visits FROM per_page EMIT CHANGES;"


@pytest.fixture
def url(service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    with running(service, listen(replace(settings, http_port=0))) as server:
        yield server.url


def until(found: Callable[[], T | None]) -> T:
    deadline = time.monotonic() + SECONDS
    while not (value := found()):
        assert time.monotonic() < deadline, f"not within {SECONDS:.0f} s"
        time.sleep(0.2)
    return value


def test_the_python_client_of_pypi(url: str, service: Service) -> None:
    client = KSQLdbClient(url)
    (created,) = client.ksql(CREATE.format(service.settings.service_id))
    (counted_,) = client.ksql(COUNT)
    assert created["commandStatus"]["status"] == counted_["commandStatus"]["status"] == "SUCCESS"
    rows = [{"WHO": "ann", "PAGE": "home", "MS": 5}, {"WHO": "bob", "PAGE": "home", "MS": 7}]
    assert client.inserts_stream("visits", rows) == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]

    def counted() -> list | None:
        header, *found = client.query_sync(PULL)
        if "still building" in header.get("message", ""):
            return None
        assert header["columnNames"] == ["PAGE", "VISITS", "MS"]
        return found if found == [["home", 2, 12]] else None

    assert until(counted)
    assert asyncio.run(follow(client)) == ["home", 3]
    until(lambda: not service._pushes.all())


async def follow(client: KSQLdbClient) -> list:
    """The first change of a push query; closing the query ends its rows."""
    first: list = []
    id_ = None
    async for part in client.query_async(PUSH, timeout=SECONDS):
        if id_ is None:
            id_ = part["queryId"]
            await asyncio.to_thread(client.inserts_stream, "visits", [{"WHO": "cy", "PAGE": "home", "MS": 1}])
        else:
            first = first or part
            assert await asyncio.to_thread(client.close_query, id_)
    return first


SCRIPT = """
const Client = require("ksqldb-client");
const [host, port, create, count, pull, push] = process.argv.slice(2);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
(async () => {
  const client = new Client({ host, port });
  await client.connect();
  const report = {};
  report.created = (await client.executeStatement(create)).status;
  report.counted = (await client.executeStatement(count)).status;
  report.inserted = (await client.insertInto("visits", { WHO: "ann", PAGE: "home", MS: 5 })).status;
  for (let tries = 0; tries < 200 && !(report.pulled && report.pulled.length); tries++, await wait(200)) {
    const { data } = await client.query(pull);
    report.pulled = data ? data.rows : [];
  }
  let first = null;
  const ended = client.streamQuery(push, (part) => {
    if (!part.rows) client.insertInto("visits", { WHO: "bob", PAGE: "home", MS: 7 });
    else if (!first) { first = part.rows[0]; client.terminatePushQuery(part.metadata.queryId); }
  });
  report.ended = (await ended).status;
  report.pushed = first;
  await client.disconnect();
  console.log(JSON.stringify(report));
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.fixture(scope="session")
def node_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the client in it."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("npm or node is not installed")
    folder = tmp_path_factory.mktemp("node")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), NODE_CLIENT]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"{NODE_CLIENT} cannot be installed: {done.stderr[-300:]}")
    (folder / "script.js").write_text(SCRIPT)
    return folder


def test_the_node_client_of_npm(url: str, service: Service, node_client: Path) -> None:
    host, _, port = url.rpartition(":")
    texts = [CREATE.format(service.settings.service_id).strip(), COUNT, PULL, PUSH]
    run = ["node", "script.js", host, port, *texts]
    done = subprocess.run(run, cwd=node_client, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "created": 200,
        "counted": 200,
        "inserted": 200,
        "pulled": [{"PAGE": "home", "VISITS": 1, "MS": 5}],
        "ended": 200,
        "pushed": {"PAGE": "home", "VISITS": 2},
    }
    until(lambda: not service._pushes.all())
