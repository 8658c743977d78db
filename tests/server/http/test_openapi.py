"""The OpenAPI document against the server: schemathesis asks what the document allows, and what it does not."""

from collections.abc import Mapping
from itertools import chain, cycle

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.local import SharedServer

EXAMPLES = 25
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)

TEXTS = (
    "SHOW STREAMS; SHOW TABLES; SHOW QUERIES EXTENDED;",
    "SELECT * FROM totals;",
    "SELECT id, total + 1 AS n FROM totals WHERE id IN ('a', 'b') LIMIT 5;",
    "SELECT * FROM orders EMIT CHANGES LIMIT 0;",
    "DESCRIBE ORDERS EXTENDED; EXPLAIN SELECT id FROM totals;",
    "DEFINE x = '1'; SHOW VARIABLES; SET 'auto.offset.reset' = 'earliest';",
    "INSERT INTO orders (id, amount) VALUES ('a', ${n});",
    "SELECT",
)


STATEMENTS = cycle(chain.from_iterable((text, None) for text in TEXTS))


def with_statement(body: object) -> object:
    """Half of the made-up texts become statements, which nothing would make up; made-up properties go with them."""
    if isinstance(body, dict):
        for name in ("ksql", "sql"):
            if isinstance(body.get(name), str) and (text := next(STATEMENTS)) is not None:
                return {name: text}
    return body


@schemathesis.serializer("application/vnd.ksqlapi.delimited.v1")
def as_it_is(context: schemathesis.SerializationContext, value: object) -> bytes:
    del context
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


ENDPOINTS = (
    "POST /ksql", "POST /query-stream", "POST /query", "POST /close-query", "POST /inserts-stream", "POST /backup",
    "GET /info", "GET /healthcheck", "GET /clusterStatus", "GET /is_valid_property/{name}", "GET /metrics",
    "GET /status", "GET /status/{type}/{entity}/{action}",
)  # fmt: skip


@pytest.fixture(scope="module")
def operations(shared: SharedServer) -> Mapping[str, APIOperation]:
    """The endpoints of the document, by method and path."""
    document = schemathesis.openapi.from_dict(httpx.get(f"{shared.url}/openapi.json").json())
    return {found.ok().label: found.ok() for found in document.get_all_operations()}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_no_request_is_the_servers_fault(endpoint: str, operations: Mapping[str, APIOperation], url: str) -> None:
    @given(case=operations[endpoint].as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: schemathesis.Case) -> None:
        case.body = with_statement(case.body)
        response = case.call(base_url=url, timeout=20)
        case.validate_response(response, checks=CHECKS)

    check()


def test_every_endpoint_of_the_document_is_asked(operations: Mapping[str, APIOperation]) -> None:
    assert set(operations) == set(ENDPOINTS)
