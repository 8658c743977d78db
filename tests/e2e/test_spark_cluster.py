"""A server whose Spark is a standalone cluster: the quick start, a backfill, and the end of a worker in the middle."""

import json
from collections.abc import Iterator

import pytest

from holdfast.kafka.broker import EmbeddedBroker

from .server import Server, servers, wait_for
from .spark_cluster import SparkCluster, spark_cluster
from .topics import create_topics, producer

RECORDS, USERS = 200_000, 1_000
EXECUTORS = {"spark_executor_memory": "512m", "spark_executor_cores": "1"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, broker: EmbeddedBroker, cluster: SparkCluster) -> Iterator[Server]:
    with servers(tmp_path_factory.mktemp("on_cluster"), broker.bootstrap) as make:
        made = make("on_cluster")
        made.settings = {**EXECUTORS, "spark_master": cluster.master, "max_records_per_tick": str(RECORDS // 4)}
        made.start()
        yield made


def test_small_ticks_run_on_the_driver(server: Server) -> None:
    server.sql(
        "CREATE STREAM clicks (user STRING KEY, page STRING) "
        "WITH (KAFKA_TOPIC='cluster_clicks', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE TABLE per_user AS SELECT user, COUNT(*) AS n FROM clicks GROUP BY user;"
    )
    wait_for("the query runs", lambda: all(q["state"] == "RUNNING" for q in server.queries().values()))
    server.sql("INSERT INTO clicks VALUES ('ann', 'home'); INSERT INTO clicks VALUES ('ann', 'cart');")
    wait_for("both rows are counted", lambda: server.pull("SELECT n FROM per_user WHERE user = 'ann';") == [[2]])
    assert jobs(server, "prepared") > 0
    assert jobs(server, "small") == 0


def test_a_backfill_runs_on_the_workers_and_survives_the_end_of_one(server: Server, cluster: SparkCluster) -> None:
    assert server.kafka is not None
    create_topics(server.kafka, "cluster_orders", partitions=2)
    writer = producer(server.kafka)
    for i in range(RECORDS):
        writer.produce("cluster_orders", json.dumps({"amount": i}), f"u{i % USERS}")
        if i % 50_000 == 0:
            writer.flush(60)
    assert writer.flush(60) == 0
    server.sql(
        "CREATE STREAM orders (user STRING KEY, amount BIGINT) "
        "WITH (KAFKA_TOPIC='cluster_orders', VALUE_FORMAT='JSON');"
        "CREATE TABLE totals AS SELECT user, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY user;"
    )
    wait_for("the first slice has run", lambda: jobs(server, "large") >= 1)
    cluster.kill_worker()
    wait_for("all is read", lambda: server.pull("SELECT SUM(n) AS n FROM totals;") == [[RECORDS]], 180)
    assert server.pull("SELECT COUNT(*) AS n FROM totals;") == [[USERS]]
    assert server.pull("SELECT SUM(total) AS n FROM totals;") == [[RECORDS * (RECORDS - 1) // 2]]
    assert server.alive


def jobs(server: Server, plan: str) -> int:
    """The number of Spark jobs of a kind."""
    lines = server.http.get(f"{server.url}/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("holdfast_spark_job_seconds_count")]
    return sum(int(float(line.split()[-1])) for line in found if f'plan="{plan}"' in line)
