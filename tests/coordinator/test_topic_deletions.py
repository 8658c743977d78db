"""DROP … DELETE TOPIC deletes the topic, whenever the process dies, and never another one of its name."""

from holdfast.app import Service
from holdfast.catalog.commands import encode_command
from holdfast.config import Settings
from holdfast.kafka.admin import TopicSpec
from holdfast.names import TopicName
from holdfast.planner.commands import commands_for
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from holdfast.sql.bind import bind
from holdfast.sql.parse import statements

from .running import run, wait

SETUP = "".join(
    f"CREATE STREAM {name} (id STRING KEY, n INT) "
    f"WITH (KAFKA_TOPIC = '{{0}}_{name}', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
    for name in ("plain", "died", "anew", "kept")
)


def test_a_topic_is_deleted_also_after_a_crash(settings: Settings, sessions: Sessions) -> None:
    service_id, folder = str(settings.service_id), settings.data_dir / "store"
    topics = {name: TopicName(f"{service_id}_{name}") for name in ("plain", "died", "anew", "kept")}
    service = Service(settings, sessions, open_store(folder))
    try:
        run(service, SETUP.format(service_id))
        run(service, "DROP STREAM plain DELETE TOPIC;")
        wait(lambda: topics["plain"] in service.topics(), False)
        # As crashes leave them: the command is written and nothing else done; or not even the command.
        for name in ("died", "anew"):
            (parsed,) = statements(f"DROP STREAM {name} DELETE TOPIC;")
            (command,) = commands_for(bind(parsed.statement, service.catalog, {}), text=parsed.text, number=99)
            service._commands._deletions.intend(topics[name])
            service._log.append(*encode_command(command))
        service._commands._deletions.intend(topics["kept"])
        service._admin.delete(topics["anew"])
        wait(lambda: topics["anew"] in service.topics(), False)
        service._admin.create(TopicSpec(name=topics["anew"]))
    finally:
        service.stop()

    service = Service(settings, sessions, open_store(folder))
    try:
        assert {name for name in topics if service.catalog.find(name.upper())} == {"kept"}
        wait(lambda: {name for name, topic in topics.items() if topic in service.topics()}, {"anew", "kept"})
        service._admin.create(TopicSpec(name=topics["died"]))
    finally:
        service.stop()

    # It was finished once: what has the name later is not touched.
    service = Service(settings, sessions, open_store(folder))
    try:
        assert topics["died"] in service.topics()
    finally:
        service.stop()
