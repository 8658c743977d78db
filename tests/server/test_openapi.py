"""The OpenAPI document against the server: schemathesis asks what the document allows, and what it does not."""

from collections.abc import Iterator
from itertools import chain, cycle

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from holdfast.server.app import make_app
from holdfast.server.serve import listen, running

from .fake import ORDERS, TOTALS, FakeService

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


DOCUMENT = make_app(FakeService().run(ORDERS + TOTALS)).openapi()
schema = schemathesis.openapi.from_dict(DOCUMENT)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    service = FakeService().run(ORDERS + TOTALS)
    with running(service, listen(service.settings)) as started:
        yield started.url


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_is_the_servers_fault(case: schemathesis.Case, server: str) -> None:
    case.body = with_statement(case.body)
    response = case.call(base_url=server, timeout=20)
    case.validate_response(response, checks=CHECKS)
