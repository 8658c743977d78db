"""/ksql: entities, and what an error reports."""

import httpx
import pytest

from holdfast.errors import KafkaError
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.server.http.server import listen, running
from tests.server.local import ORDERS, TOTALS, LocalService, local_service, raising


def run(http: httpx.Client, text: str, **more: object) -> httpx.Response:
    return http.post("/ksql", json={"ksql": text, **more})


def one(http: httpx.Client, text: str) -> dict:
    response = run(http, text)
    assert response.status_code == 200, response.text
    (entity,) = response.json()
    assert entity["statementText"] == text.rstrip(";")
    return entity


def test_a_create_says_what_it_did(http: httpx.Client) -> None:
    entity = one(http, "CREATE STREAM big AS SELECT * FROM orders WHERE amount > 5;")
    assert entity["@type"] == "currentStatus"
    assert entity["commandId"] == "stream/`BIG`/create"
    assert entity["commandStatus"]["status"] == "SUCCESS"
    assert entity["commandStatus"]["queryId"].startswith("CSAS_BIG")
    assert entity["commandSequenceNumber"] >= 0
    assert entity["warnings"] == []


def test_a_drop_and_a_terminate_are_commands_too(http: httpx.Client, service: LocalService) -> None:
    query = service.query
    assert one(http, f"PAUSE {query};")["commandId"] == f"pause/{query}/execute"
    assert one(http, "RESUME ALL;")["commandId"] == f"resume/{query}/execute"
    assert one(http, f"TERMINATE {query};")["commandId"] == f"terminate/{query}/execute"
    assert one(http, "DROP TABLE totals;")["commandId"] == "table/`TOTALS`/drop"


def test_functions_of_users_are_shown(http: httpx.Client) -> None:
    text = (
        "CREATE FUNCTION twice(n INT) RETURNS BIGINT LANGUAGE PYTHON AS "
        "'def twice(n):\n    \"Two times a number.\"\n    return [v and 2 * v for v in n.to_pylist()]';"
    )
    created = one(http, text)
    assert created["commandId"] == "function/`TWICE`/create"
    assert {"name": "TWICE", "type": "SCALAR", "category": "USER"} in one(http, "SHOW FUNCTIONS;")["functions"]
    described = one(http, "DESCRIBE FUNCTION twice;")
    assert (described["name"], described["description"]) == ("TWICE", "Two times a number.")
    assert (len(described["version"]), described["path"]) == (12, "python")
    (form,) = described["functions"]
    assert ([a["type"] for a in form["arguments"]], form["returnType"]) == (["INTEGER"], "BIGINT")
    assert one(http, "DROP FUNCTION twice;")["commandId"] == "function/`TWICE`/drop"
    assert run(http, "DESCRIBE FUNCTION twice;").json()["message"].startswith('function "TWICE" does not exist')


def test_a_drop_of_what_is_not_there_warns(http: httpx.Client) -> None:
    assert one(http, "DROP STREAM IF EXISTS nothing;")["warnings"] == [{"message": 'stream "NOTHING" does not exist'}]


def test_an_insert_reaches_the_service(http: httpx.Client, service: LocalService) -> None:
    assert one(http, "INSERT INTO orders (id, amount) VALUES ('a', 1);")["@type"] == "currentStatus"
    assert service.inserted == [(b"a", 1)]


def test_lists(http: httpx.Client) -> None:
    log, stream = one(http, "SHOW STREAMS;")["streams"]
    assert stream == {
        "type": "STREAM",
        "name": "ORDERS",
        "topic": "orders",
        "keyFormat": "KAFKA",
        "valueFormat": "JSON",
        "isWindowed": False,
    }
    assert log["name"] == "PROCESSING_LOG"
    (table,) = one(http, "SHOW TABLES;")["tables"]
    assert (table["name"], table["type"]) == ("TOTALS", "TABLE")
    (query,) = one(http, "SHOW QUERIES;")["queries"]
    assert query["sinks"] == ["TOTALS"]
    assert query["statusCount"] == {"RUNNING": 1}
    assert query["queryType"] == "PERSISTENT"
    assert [topic["name"] for topic in one(http, "SHOW TOPICS;")["topics"]] == ["TOTALS", "orders"]
    assert {"name": "COUNT", "type": "AGGREGATE", "category": "AGGREGATE"} in one(http, "SHOW FUNCTIONS;")["functions"]


@pytest.mark.parametrize("text", ["SHOW {}S EXTENDED", "LIST {}S EXTENDED", "DESCRIBE {}S", "DESCRIBE {}S EXTENDED"])
@pytest.mark.parametrize(("kind", "name", "topic"), [("STREAM", "ORDERS", "orders"), ("TABLE", "TOTALS", "TOTALS")])
def test_all_of_a_kind_are_described(http: httpx.Client, text: str, kind: str, name: str, topic: str) -> None:
    answer = one(http, text.format(kind))
    (described,) = (each for each in answer["sourceDescriptions"] if each["name"] != "PROCESSING_LOG")
    assert (answer["@type"], described["name"], described["type"]) == ("source_descriptions", name, kind)
    assert (described["topic"], described["extended"]) == (topic, True)
    assert described == one(http, f"DESCRIBE {name} EXTENDED;")["sourceDescription"]


def test_describe(http: httpx.Client) -> None:
    described = one(http, "DESCRIBE orders;")["sourceDescription"]
    assert (described["name"], described["type"], described["topic"]) == ("ORDERS", "STREAM", "orders")
    key, value = described["fields"]
    assert (key["name"], key["type"], key["schema"]["type"]) == ("ID", "KEY", "STRING")
    assert (value["name"], value["schema"]["type"], "type" in value) == ("AMOUNT", "INTEGER", False)
    assert [query["sinks"] for query in described["readQueries"]] == [["TOTALS"]]


def test_a_windowed_table_is_described_with_its_layout_and_its_retention(http: httpx.Client) -> None:
    windows = "WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 HOUR'"
    create = (
        "CREATE TABLE {} (id STRING PRIMARY KEY, n INT) "
        f"WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', PARTITIONS=1, {windows}, {{}});"
    )
    created = one(http, create.format("w", "WINDOW_TOPIC='CHANGELOG', RETENTION='36 HOURS'"))
    assert (created["commandStatus"]["message"], created["warnings"]) == ("Table W created.", [])
    described = one(http, "DESCRIBE w;")["sourceDescription"]
    shown = {name: described[f"window{name}"] for name in ("Type", "Size", "Topic", "Retention")}
    assert shown == {"Type": "TUMBLING", "Size": "1 hour", "Topic": "CHANGELOG", "Retention": "1 day 12 hours"}
    assert {t["name"]: t["isWindowed"] for t in one(http, "SHOW TABLES;")["tables"]} == {"W": True, "TOTALS": False}
    explained = one(http, "EXPLAIN " + create.format("v", "RETENTION='2 HOURS'"))
    plan = explained["queryDescription"]["executionPlan"]
    assert "Window: TUMBLING (SIZE 3600 s, EMIT CHANGES)\n  Window Topic: TOPIC\n  Retention: 7200 s" in plan


def test_a_stream_over_a_windowed_topic_says_that_its_windows_have_no_retention(http: httpx.Client) -> None:
    with_ = "WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', PARTITIONS=1, WINDOW_TYPE='SESSION')"
    (warning,) = one(http, f"CREATE STREAM w (id STRING KEY, n INT) {with_};")["warnings"]
    assert warning["message"].startswith("The windows of stream W have no retention")


def test_explain(http: httpx.Client, service: LocalService) -> None:
    query = service.query
    running = one(http, f"EXPLAIN {query};")["queryDescription"]
    assert (running["id"], running["sinks"], running["format"]) == (query, ["TOTALS"], "TEXT")
    assert running["executionPlan"].startswith("Create Table TOTALS on topic TOTALS\n")
    planned = one(http, "EXPLAIN SELECT id FROM orders EMIT CHANGES;")["queryDescription"]
    assert planned["executionPlan"].startswith("Query PUSH_ORDERS\n  Reads: ORDERS\n")
    assert (planned["sources"], planned["fields"][0]["name"]) == (["ORDERS"], "ID")


@pytest.mark.parametrize("what", ["CTAS_TOTALS_3", "SELECT * FROM totals", "CREATE STREAM s AS SELECT * FROM orders"])
@pytest.mark.parametrize(("format_", "begins"), [("JSON", "{\n"), ("DOT", "digraph plan {\n"), ("SVG", "<svg ")])
def test_explain_in_a_format(http: httpx.Client, what: str, format_: str, begins: str) -> None:
    described = one(http, f"EXPLAIN {what} AS {format_};")["queryDescription"]
    assert (described["format"], described["executionPlan"][: len(begins)]) == (format_, begins)
    before = one(http, f"EXPLAIN FORMAT {format_} FOR {what};")["queryDescription"]
    assert before["executionPlan"] == described["executionPlan"]


def test_set_holds_for_the_statements_after_it(http: httpx.Client, service: LocalService) -> None:
    create = "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    response = run(http, f"SET 'ksql.persistence.default.format.value'='JSON'; {create}")
    assert [entity["@type"] for entity in response.json()] == ["properties", "currentStatus"]
    assert response.json()[0]["overwrittenProperties"] == ["ksql.persistence.default.format.value"]
    assert service.catalog.find("S") is not None
    given = {"auto.offset.reset": "latest", "holdfast.progress": True}
    (unset,) = run(http, "UNSET 'auto.offset.reset'", streamsProperties=given).json()
    assert unset["properties"] == [{"name": "holdfast.progress", "scope": "KSQL", "value": "true"}]


@pytest.mark.parametrize("prefix", ["ksql.streams.", "consumer.", "ksql.streams.consumer."])
def test_a_property_is_the_same_with_the_prefixes_of_kafka_streams(http: httpx.Client, prefix: str) -> None:
    name, shown = f"{prefix}auto.offset.reset", {"name": "auto.offset.reset", "scope": "KSQL", "value": "latest"}
    assert one(http, f"SET '{name}'='latest';")["properties"] == [shown]
    assert run(http, f"SET '{name}'='latest'; UNSET '{name}';").json()[1]["properties"] == []
    assert run(http, "UNSET 'holdfast.progress'", streamsProperties={name: "latest"}).json()[0]["properties"] == [shown]
    assert run(http, f"SET '{name}'='newest';").json()["hint"] == "Allowed values are: earliest, latest."


@pytest.mark.parametrize(
    "name",
    [
        "processing.guarantee",
        "cache.max.bytes.buffering",
        "ksql.streams.commit.interval.ms",
        "ksql.streams.num.stream.threads",
        "ksql.streams.producer.linger.ms",
        "ksql.query.pull.table.scan.enabled",
        "ksql.streams.shutdown.timeout.ms",
    ],
)
def test_what_scripts_for_ksqldb_set_can_be_set(http: httpx.Client, name: str) -> None:
    assert run(http, f"SET '{name}'='1'; SHOW STREAMS;").status_code == 200
    assert http.get(f"/is_valid_property/{name}").json() is True


def test_a_value_that_would_change_what_is_computed_is_refused(http: httpx.Client) -> None:
    assert run(http, "SET 'ksql.timestamp.throw.on.invalid'='false';").status_code == 200
    assert run(http, "SET 'ksql.timestamp.throw.on.invalid'='true';").json()["hint"] == "Allowed values are: false."


def test_set_of_what_does_not_exist_names_the_nearest(http: httpx.Client) -> None:
    unknown = run(http, "SET 'auto.ofset.reset'='latest';").json()
    assert (unknown["sqlstate"], unknown["hint"]) == ("22023", 'Did you mean "auto.offset.reset"?')
    wrong = run(http, "SET 'auto.offset.reset'='newest';").json()
    assert wrong["hint"] == "Allowed values are: earliest, latest."


def test_an_error_reports_the_statements_before_it_and_runs_none_after(
    http: httpx.Client, service: LocalService
) -> None:
    """Ten statements of which the seventh is wrong."""
    before = "".join(f"INSERT INTO orders (id, amount) VALUES ('a', {i});\n" for i in range(6))
    after = "INSERT INTO orders VALUES ('c', 8);\n" * 3
    response = run(http, f"{before}INSERT INTO ordrs VALUES ('b', 7);\n{after}")
    error = response.json()
    assert response.status_code == 400
    assert (error["@type"], error["error_code"], error["sqlstate"]) == ("statement_error", 40001, "42P01")
    assert error["statementText"] == "INSERT INTO ordrs VALUES ('b', 7)"
    assert error["position"] == {"line": 7, "column": 13, "offset": len(before) + 12}
    assert error["hint"] == 'Did you mean "ORDERS"?'
    assert len(error["entities"]) == len(service.inserted) == 6


def test_a_text_that_cannot_be_read_stops_only_what_follows_it(http: httpx.Client, service: LocalService) -> None:
    error = run(http, "INSERT INTO orders VALUES ('a', 1); SELEC 1;").json()
    assert (error["@type"], error["error_code"], error["sqlstate"]) == ("statement_error", 40001, "42601")
    assert len(error["entities"]) == len(service.inserted) == 1


def test_a_select_belongs_elsewhere(http: httpx.Client) -> None:
    response = run(http, "SELECT * FROM totals;")
    assert (response.status_code, response.json()["error_code"]) == (400, 40002)
    assert "/query-stream" in response.json()["hint"]


@pytest.mark.parametrize(
    ("failure", "says"), [(KafkaError("kafka is away"), "kafka is away"), (ZeroDivisionError(), "inside the server")]
)
def test_only_the_servers_own_trouble_is_a_server_error(
    http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch, failure: Exception, says: str
) -> None:
    monkeypatch.setattr(service, "execute", raising(failure))
    response = run(http, "DROP TABLE totals;")
    assert (response.status_code, response.json()["error_code"]) == (500, 50000)
    assert says in response.json()["message"]


# ---- variables


def test_variables_of_the_request_stand_in_for_names_and_values(http: httpx.Client, service: LocalService) -> None:
    text = "CREATE STREAM ${name} AS SELECT * FROM orders WHERE amount > ${least} AND id <> '${text}';"
    variables = {"NAME": "big", "least": 5, "text": "it's"}
    (made,) = run(http, text, sessionVariables=variables).json()
    assert made["commandId"] == "stream/`BIG`/create"
    assert "amount > 5 AND id <> 'it''s'" in service.catalog.object("BIG").statement


def test_define_holds_for_the_statements_after_it(http: httpx.Client) -> None:
    text = "DEFINE Who = 'orders'; DESCRIBE ${who}; SHOW VARIABLES; UNDEFINE who; SHOW VARIABLES; DESCRIBE ${who};"
    error = run(http, text).json()
    defined, described, shown, undefined, nothing = error["entities"]
    assert defined["@type"] == shown["@type"] == "variables"
    assert defined["variables"] == shown["variables"] == [{"name": "WHO", "value": "orders"}]
    assert described["sourceDescription"]["name"] == "ORDERS"
    assert undefined["variables"] == nothing["variables"] == []
    assert (error["message"], error["sqlstate"]) == ('variable "who" is not defined', "42704")
    assert error["position"]["offset"] == text.rindex("${who}")


def test_a_position_is_that_of_the_text_as_it_was_sent(http: httpx.Client) -> None:
    text = "DESCRIBE ${a};\nDESCRIBE   nothng;"
    error = run(http, text, sessionVariables={"a": "orders"}).json()
    assert error["position"] == {"line": 2, "column": 12, "offset": text.index("nothng")}


def test_a_query_takes_variables_too(http: httpx.Client) -> None:
    asked = {"sql": "SELECT ${what} FROM totals;", "sessionVariables": {"what": "id"}}
    assert http.post("/query-stream", json=asked).status_code == 200
    assert http.post("/query-stream", json={**asked, "sessionVariables": {}}).json()["sqlstate"] == "42704"


# ---- push queries are queries


def test_a_push_query_is_listed_and_can_be_terminated(http: httpx.Client, url: str, service: LocalService) -> None:
    asked = {"sql": "SELECT id FROM totals EMIT CHANGES;"}
    with httpx.stream("POST", f"{url}/query-stream", json=asked, trust_env=False) as response:
        push = service.next_push()
        listed = {query["id"]: query for query in one(http, "SHOW QUERIES;")["queries"]}
        assert listed[push.id]["queryType"] == "PUSH"
        assert listed[push.id]["queryString"] == asked["sql"].rstrip(";")
        ended = one(http, f"TERMINATE {push.id.lower()};")
        assert ended["commandStatus"]["status"] == "SUCCESS"
        assert len(list(response.iter_lines())) == 1
    assert run(http, f"TERMINATE {push.id};").json()["sqlstate"] == "42P01"


def test_there_can_be_only_so_many_push_queries(engines: EnginePair) -> None:
    asked = {"sql": "SELECT id FROM totals EMIT CHANGES;"}
    with (
        local_service(engines, max_push_queries=2) as service,
        running(service.run(ORDERS + TOTALS), listen(service.settings)) as server,
        httpx.Client(base_url=server.url, trust_env=False) as http,
        httpx.Client(base_url=server.url, trust_env=False) as many,
    ):
        opened = [many.send(many.build_request("POST", "/query-stream", json=asked), stream=True) for _ in range(2)]
        refused = http.post("/query-stream", json=asked)
        assert (refused.status_code, refused.json()["error_code"]) == (400, 40003)
        first = service.next_push()
        opened[0].close()
        assert service.has_closed(first)
        again = many.send(many.build_request("POST", "/query-stream", json=asked), stream=True)
        assert again.status_code == 200
        for response in (opened[1], again):
            response.close()


def test_a_transaction_is_carried_by_its_property(http: httpx.Client, service: LocalService) -> None:
    opened = one(http, "BEGIN;")
    assert (opened["@type"], opened["transactionId"][:3], opened["state"]) == ("transaction", "TX_", "OPEN")
    inside = {opened["property"]: opened["transactionId"]}
    asked = {"sql": "SELECT id, total FROM totals;"}
    found = []
    for total in (4, 5):
        found.append(http.post("/query-stream", json=asked | {"properties": inside}).text.splitlines()[1:])
        service.put("TOTALS", ("a", total))
    assert found == [['["a",3]']] * 2, "both as of the transaction's time"
    assert http.post("/query-stream", json=asked).text.splitlines()[1:] == ['["a",5]']
    (ended,) = run(http, "COMMIT;", streamsProperties=inside).json()
    assert ended["state"] == "ENDED"
    assert has_ended(http, opened["transactionId"])


def has_ended(http: httpx.Client, transaction: str) -> bool:
    """Whether there is no such transaction any more."""
    inside = {"holdfast.transaction": transaction}
    return run(http, "ROLLBACK;", streamsProperties=inside).json().get("sqlstate") == "25P01"


def test_a_transaction_only_reads(http: httpx.Client) -> None:
    opened = one(http, "BEGIN READ ONLY;")
    inside = {opened["property"]: opened["transactionId"]}
    refused = run(http, "DROP TABLE totals;", streamsProperties=inside).json()
    assert refused["message"] == "DROP cannot be run in a read-only transaction"
    assert refused["sqlstate"] == "25006"
    push = {"sql": "SELECT id FROM totals EMIT CHANGES;", "properties": inside}
    assert http.post("/query-stream", json=push).json()["sqlstate"] == "25006"
    assert run(http, "BEGIN;", streamsProperties=inside).json()["sqlstate"] == "25001"
    assert run(http, "SHOW TABLES;", streamsProperties=inside).status_code == 200


def test_what_a_transaction_changes_is_done_on_commit(http: httpx.Client, service: LocalService) -> None:
    one(http, "CREATE HOLD a ON totals;")
    number = one(http, "CREATE HOLD b ON totals;")["commandSequenceNumber"]
    opened = one(http, "BEGIN;")
    inside = {opened["property"]: opened["transactionId"]}
    (dropped,) = run(http, "DROP HOLD a;", streamsProperties=inside).json()
    assert (dropped["commandId"], dropped["commandStatus"]["status"]) == ("hold/`A`/drop", "QUEUED")
    assert dropped["commandStatus"]["message"] == "Queued until COMMIT."
    run(http, "ALTER HOLD b RENAME TO a;", streamsProperties=inside).raise_for_status()
    assert set(service.catalog.holds) == {"A", "B"}
    (ended,) = run(http, "COMMIT;", streamsProperties=inside).json()
    assert ended["state"] == "COMMITTED"
    assert ended["commandSequenceNumber"] > number
    assert [change["commandId"] for change in ended["changes"]] == ["hold/`A`/drop", "hold/`B`/alter"]
    assert set(service.catalog.holds) == {"A"}
    assert http.get("/status/hold/A/drop").json()["status"] == "SUCCESS"


def test_a_transaction_can_be_one_request(http: httpx.Client, service: LocalService) -> None:
    one(http, "CREATE HOLD a ON totals;")
    answers = run(http, "BEGIN; ALTER HOLD a RENAME TO b; COMMIT;").json()
    assert [each["@type"] for each in answers] == ["transaction", "currentStatus", "transaction"]
    assert set(service.catalog.holds) == {"B"}
    assert has_ended(http, answers[0]["transactionId"])
    answers = run(http, "BEGIN; ALTER HOLD b RENAME TO c; ROLLBACK;").json()
    assert set(service.catalog.holds) == {"B"}
    assert has_ended(http, answers[0]["transactionId"])


@pytest.mark.parametrize("wrong", ["DROP HOLD nothing;", "DORP HOLD a;", "INSERT INTO totals (id) VALUES (1);"])
def test_a_request_that_fails_rolls_back_what_it_began(http: httpx.Client, service: LocalService, wrong: str) -> None:
    one(http, "CREATE HOLD a ON totals;")
    refused = run(http, f"BEGIN; ALTER HOLD a RENAME TO b; {wrong} COMMIT;")
    assert refused.status_code == 400
    assert set(service.catalog.holds) == {"A"}
    assert has_ended(http, refused.json()["entities"][0]["transactionId"])


def test_an_error_in_a_later_request_fails_the_transaction(http: httpx.Client) -> None:
    opened = one(http, "BEGIN;")
    inside = {opened["property"]: opened["transactionId"]}
    assert run(http, "DORP HOLD a;", streamsProperties=inside).status_code == 400
    assert run(http, "COMMIT;", streamsProperties=inside).json()["sqlstate"] == "40000"
    opened = one(http, "BEGIN;")
    inside = {opened["property"]: opened["transactionId"]}
    assert run(http, "SELECT id FROM totals;", streamsProperties=inside).json()["error_code"] == 40002
    assert run(http, "COMMIT;", streamsProperties=inside).status_code == 200


def test_there_must_be_a_transaction_to_end(http: httpx.Client) -> None:
    answer = run(http, "ROLLBACK;").json()
    assert (answer["message"], answer["sqlstate"]) == (
        "there is no transaction to rollback",
        "25P01",
    )


def test_explain_timestamp(http: httpx.Client) -> None:
    described = one(http, "EXPLAIN TIMESTAMP FOR SELECT id FROM totals;")["queryDescription"]
    assert described["executionPlan"].lstrip().startswith("query time: ")
    assert "TOTALS" in described["executionPlan"]
    assert run(http, "EXPLAIN TIMESTAMP FOR SELECT id FROM totals EMIT CHANGES;").status_code == 400


def test_topics_and_who_reads_them(http: httpx.Client, service: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    service.broker.create(TopicSpec(name=TopicName("two"), partitions=2))
    monkeypatch.setattr(service, "topic_readers", lambda: {TopicName("two"): (3, 2)})
    assert one(http, "SHOW TOPICS;")["topics"][2:] == [{"name": "two", "replicaInfo": [1, 1]}]
    assert len(one(http, "SHOW ALL TOPICS;")["topics"]) == 6
    extended = one(http, "LIST TOPICS EXTENDED;")
    assert extended["@type"] == "kafka_topics_extended"
    shown = {"name": "two", "replicaInfo": [1, 1], "consumerCount": 3, "consumerGroupCount": 2}
    assert extended["topics"][2:] == [shown]


def test_an_assertion_says_that_it_holds_or_fails_with_417(http: httpx.Client) -> None:
    held = one(http, "ASSERT TOPIC orders;")
    assert (held["@type"], held["topicName"], held["exists"]) == ("assert_topic", "orders", True)
    assert one(http, "ASSERT NOT EXISTS TOPIC 'Orders' TIMEOUT 10 MILLISECONDS;")["exists"] is False
    failed = run(http, "ASSERT TOPIC nothing;")
    assert (failed.status_code, failed.json()["error_code"], failed.json()["sqlstate"]) == (417, 41700, "P0004")
    assert run(http, "ASSERT SCHEMA SUBJECT s;").json()["message"].startswith("ASSERT SCHEMA needs a schema registry")


def test_queries_with_their_plans(http: httpx.Client, service: LocalService) -> None:
    query = service.query
    extended = one(http, "SHOW QUERIES EXTENDED;")
    (described,) = extended["queryDescriptions"]
    assert (extended["@type"], described["id"], described["sinks"]) == ("query_descriptions", query, ["TOTALS"])
    assert "Query " in described["executionPlan"]


def test_every_property_is_listed_with_what_the_session_has_set(http: httpx.Client) -> None:
    listed = run(http, "SET 'auto.offset.reset' = 'earliest'; SHOW PROPERTIES;").json()[1]
    values = {each["name"]: each["value"] for each in listed["properties"]}
    assert values["auto.offset.reset"] == "earliest"
    assert values["ksql.persistence.wrap.single.values"] is None
    assert listed["overwrittenProperties"] == ["auto.offset.reset"]
    assert "auto.offset.reset" not in listed["defaultProperties"]


def test_print_is_lines_of_text(http: httpx.Client, service: LocalService) -> None:
    service.broker.create(TopicSpec(name=TopicName("numbers")))
    for n in range(5):
        service.write("numbers", ("k", n), timestamp=n + 1)
    for path, name in (("/query-stream", "sql"), ("/query", "ksql")):
        answer = http.post(path, json={name: "PRINT numbers FROM BEGINNING INTERVAL 2 LIMIT 2;"})
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.splitlines() == [
            "Key format: KAFKA_STRING",
            "Value format: JSON or KAFKA_STRING",
            "rowtime: 1970/01/01 00:00:00.001 Z, key: k, value: 0, partition: 0",
            "rowtime: 1970/01/01 00:00:00.003 Z, key: k, value: 2, partition: 0",
        ]
    asked = {"sql": "PRINT orders LIMIT 1;"}
    assert http.post("/query-stream", json=asked, headers={"accept": "application/json"}).status_code == 406
    assert run(http, "PRINT orders;").json()["error_code"] == 40002
