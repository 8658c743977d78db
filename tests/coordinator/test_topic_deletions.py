"""DROP … DELETE TOPIC deletes the topic, whenever the process dies, and never another one of its name."""

from holdfast.catalog.commands import encode_command
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.planner.commands import commands_for
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

from .servers import Servers
from .service_calls import run

SETUP = "".join(
    f"CREATE STREAM {name} (id STRING KEY, n INT) "
    f"WITH (KAFKA_TOPIC = '{{0}}_{name}', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
    for name in ("plain", "died", "recreated", "kept")
)


def test_a_topic_is_deleted_also_after_a_crash(servers: Servers) -> None:
    service_id = str(servers.settings.service_id)
    topics = {name: TopicName(f"{service_id}_{name}") for name in ("plain", "died", "recreated", "kept")}
    service = servers.start()
    run(service, SETUP.format(service_id))
    run(service, "DROP STREAM plain DELETE TOPIC;")
    assert topics["plain"] not in service.topics()
    # As crashes leave them: the command is written and nothing else done; or not even the command.
    for name in ("died", "recreated"):
        (parsed,) = statements(f"DROP STREAM {name} DELETE TOPIC;")
        (command,) = commands_for(bind(parsed.statement, service.catalog, {}), text=parsed.text, number=99)
        service._deletions.intend(topics[name])
        service._log.append(*encode_command(command))
    service._deletions.intend(topics["kept"])
    service._admin.delete(topics["recreated"])
    assert topics["recreated"] not in service.topics()
    service._admin.create(TopicSpec(name=topics["recreated"]))

    service = servers.start()
    assert {name for name in topics if service.catalog.find(name.upper())} == {"kept"}
    assert {name for name, topic in topics.items() if topic in service.topics()} == {"recreated", "kept"}
    service._admin.create(TopicSpec(name=topics["died"]))

    # It was finished once: what has the name later is not touched.
    service = servers.start()
    assert topics["died"] in service.topics()
