"""The OpenAPI descriptions of requests and responses, which the server parses and writes itself."""

from collections.abc import Mapping
from typing import Any

from holdfast.server.http.requests import JSON_TYPES, LINE_TYPES, RowFormat

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
BINARY: Schema = {"type": "string", "format": "binary"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}
SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
SCALAR_MAP: Schema = {"type": ["object", "null"], "additionalProperties": SCALAR}
JSON = "application/json"


def an_object(required: Mapping[str, Schema], **others: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **others}}


def an_array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


POSITION = an_object({"line": INTEGER, "column": INTEGER, "offset": INTEGER})
ERROR = an_object(
    {"@type": {"enum": ["generic_error", "statement_error"]}, "error_code": INTEGER, "message": TEXT},
    detail=TEXT,
    hint=TEXT,
    sqlstate=TEXT,
    position=POSITION,
    statementText=TEXT,
    entities=an_array(ANY_OBJECT),
)
ENTITY = an_object({"@type": TEXT, "statementText": TEXT, "warnings": an_array(an_object({"message": TEXT}))})
HEADER = an_object(
    {"queryId": {"type": ["string", "null"]}, "columnNames": an_array(TEXT), "columnTypes": an_array(TEXT)},
    notice=TEXT,
    objects=TEXT,
)
NOTICE = an_object({"notice": TEXT, "current": BOOLEAN})
DELIMITED_LINES = {
    **TEXT,
    "description": "One JSON value per line: the header, then rows, tombstones, progress and notices.",
}
PARTS = an_array({"oneOf": [HEADER, {"type": "array"}, an_object({"tombstone": {"type": "array"}}),
                            an_object({"progress": INTEGER}), NOTICE, ERROR]})  # fmt: skip
STREAMED_PARTS = an_array(
    an_object(
        {},
        header=an_object({"queryId": TEXT, "schema": TEXT}, notice=TEXT, objects=TEXT),
        row=an_object({"columns": {"type": "array"}}, tombstone=BOOLEAN),
        progress=INTEGER,
        notice=TEXT,
        current=BOOLEAN,
        errorMessage=ERROR,
        finalMessage=TEXT,
    )
)
INFO = an_object(
    {
        "KsqlServerInfo": an_object(
            {"version": TEXT, "kafkaClusterId": TEXT, "ksqlServiceId": TEXT, "serverStatus": TEXT}
        )
    }
)
PART_HEALTH = an_object({"isHealthy": BOOLEAN}, message=TEXT)
HEALTH = an_object(
    {
        "isHealthy": BOOLEAN,
        "details": {"type": "object", "additionalProperties": PART_HEALTH},
        "serverState": TEXT,
    }
)
COMMAND_STATUS = an_object({"status": TEXT, "message": TEXT, "queryId": {"type": ["string", "null"]}})
COMMAND_STATUSES = an_object({"commandStatuses": {"type": "object", "additionalProperties": TEXT}})
CLUSTER_STATUS = an_object({"clusterStatus": {"type": "object", "additionalProperties": ANY_OBJECT}})

ERRORS = {
    400: "The request or its statement is invalid",
    403: "The request comes from a page of another site",
    404: "Not found",
    406: "The requested media type is not available",
    413: "The body is too large",
    415: "The body is not JSON",
    500: "The server or Kafka failed",
    503: "The server is not ready, or is shutting down",
}


Responses = dict[int | str, dict[str, Any]]


def responses(*codes: int, **media: Schema) -> Responses:
    """The responses of an endpoint: errors by status, and 200 with the schemas of its media types."""
    errors: Responses = {code: {"description": ERRORS[code], "content": {JSON: {"schema": ERROR}}} for code in codes}
    content = {MEDIA_TYPES[name]: {"schema": schema} for name, schema in media.items()}
    return {200: {"description": "Success", "content": content}, **errors}


MEDIA_TYPES = {
    "json": JSON,
    "delimited": RowFormat.DELIMITED.value,
    "streamed": RowFormat.STREAMED.value,
    "arrow": RowFormat.ARROW.value,
    "text": "text/plain",
}
UNHEALTHY: dict[str, Any] = {"description": "A part of the server is unhealthy", "content": {JSON: {"schema": HEALTH}}}
POST_ERRORS = (400, 403, 413, 415, 500, 503)


def request_body(schema: Schema, types: tuple[str, ...] = JSON_TYPES[:2], example: object = None) -> dict[str, Any]:
    """The request body of an endpoint."""
    content = {"schema": schema} | ({"example": example} if example is not None else {})
    return {"requestBody": {"required": True, "content": dict.fromkeys(types, content)}}


def sql_body(text: str, properties: str) -> Schema:
    """The body of a request to run statements or a query."""
    return an_object(
        {text: TEXT},
        **{properties: SCALAR_MAP, "sessionVariables": SCALAR_MAP, "requestProperties": SCALAR_MAP},
    )


STATEMENTS = request_body(
    {**sql_body("ksql", "streamsProperties"), "description": "Statements, each terminated by a semicolon"},
    example={"ksql": "SHOW STREAMS; SHOW TABLES;"},
)
QUERY_STREAM = request_body(
    sql_body("sql", "properties"),
    example={"sql": "SELECT * FROM t EMIT CHANGES;", "properties": {"auto.offset.reset": "earliest"}},
)
QUERY = request_body(sql_body("ksql", "streamsProperties"), example={"ksql": "SELECT * FROM t;"})
CLOSE = request_body(an_object({"queryId": TEXT}), example={"queryId": "PUSH_T_0123456789AB"})
BACKUP = request_body(an_object({}, id={"type": ["string", "null"]}, end=BOOLEAN), example={})
BACKUP_STARTED = an_object(
    {"id": TEXT},
    seconds={"type": "number"},
    data_dir=TEXT,
    about=ANY_OBJECT,
    files=an_array(an_object({"source": TEXT, "path": TEXT, "bytes": INTEGER})),
)
INSERTS = request_body(
    {**TEXT, "description": "First a line {'target': name, 'properties': {…}}, then one JSON object per line."},
    types=(LINE_TYPES[-1],),
    example='{"target": "ORDERS"}\n{"ID": "a", "AMOUNT": 5}\n',
)
