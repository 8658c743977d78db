"""A query that reads the place of a table's records keeps the table itself, from the start of its topic."""

from .servers import Servers
from .service_calls import records, rows, run, states

SETUP = """
CREATE TABLE people (id STRING PRIMARY KEY, name STRING)
  WITH (KAFKA_TOPIC = '{0}_people', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM visits (id STRING KEY, page STRING)
  WITH (KAFKA_TOPIC = '{0}_visits', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO people (id, name) VALUES ('a', 'Ann');
INSERT INTO people (id, name) VALUES ('b', 'Bob');
INSERT INTO people (id, name) VALUES ('a', 'Anna');
INSERT INTO visits (id, page) VALUES ('a', 'first');
"""
PLACES = """
CREATE TABLE places WITH (KAFKA_TOPIC = '{0}_places') AS SELECT id, name, ROWOFFSET AS place FROM people;
"""
JOIN = """
CREATE STREAM {0} WITH (KAFKA_TOPIC = '{1}_{0}') AS SELECT visits.id AS id, page, name, people.ROWOFFSET AS place
  FROM visits JOIN people ON visits.id = people.id;
"""


def test_the_places_are_there_after_a_backfill_and_a_restart(servers: Servers) -> None:
    name = servers.settings.service_id
    service = servers.start()
    run(service, SETUP.format(name))
    run(service, PLACES.format(name))
    assert rows(service, "places") == {("a", "Anna", 2), ("b", "Bob", 1)}
    run(service, JOIN.format("every", name))
    # The table's rows are from the start also where the stream's are not.
    run(service, JOIN.format("later", name), {"auto.offset.reset": "latest"})
    assert set(states(service).values()) == {"RUNNING"}
    assert records(service, f"{name}_every") == [(b"a", b'{"PAGE":"first","NAME":"Anna","PLACE":2}')]
    run(service, "INSERT INTO visits (id, page) VALUES ('b', 'second');")
    assert records(service, f"{name}_later") == [(b"b", b'{"PAGE":"second","NAME":"Bob","PLACE":1}')]
    assert len(records(service, f"{name}_every")) == 2

    service = servers.start()
    run(service, "INSERT INTO people (id, name) VALUES ('b', 'Bert');")
    assert rows(service, "places") == {("a", "Anna", 2), ("b", "Bert", 3)}
    run(service, "INSERT INTO visits (id, page) VALUES ('b', 'third');")
    last = (b"b", b'{"PAGE":"third","NAME":"Bert","PLACE":3}')
    assert records(service, f"{name}_every")[-1] == last
    assert records(service, f"{name}_later")[-1] == last
    assert len(records(service, f"{name}_later")) == 2
