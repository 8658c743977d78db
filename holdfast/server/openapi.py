"""What the OpenAPI document says of bodies and answers, which are read and written by hand."""

from collections.abc import Mapping
from typing import Any

from holdfast.server.requests import JSON_TYPES, LINE_TYPES, Form

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}
PLAIN: Schema = {"type": ["string", "number", "boolean", "null"]}
PLAIN_MAP: Schema = {"type": ["object", "null"], "additionalProperties": PLAIN}
JSON = "application/json"


def an_object(required: Mapping[str, Schema], **others: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **others}}


def an_array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


POSITION = an_object({"line": WHOLE, "column": WHOLE, "offset": WHOLE})
ERROR = an_object(
    {"@type": {"enum": ["generic_error", "statement_error"]}, "error_code": WHOLE, "message": TEXT},
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
)
DELIMITED_LINES = {**TEXT, "description": "One JSON text per line: the header, then rows, tombstones and progress."}
PARTS = an_array({"oneOf": [HEADER, {"type": "array"}, an_object({"tombstone": {"type": "array"}}),
                            an_object({"progress": WHOLE}), ERROR]})  # fmt: skip
STREAMED_PARTS = an_array(
    an_object(
        {},
        header=an_object({"queryId": TEXT, "schema": TEXT}, notice=TEXT),
        row=an_object({"columns": {"type": "array"}}, tombstone=FLAG),
        progress=WHOLE,
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
PART_HEALTH = an_object({"isHealthy": FLAG}, message=TEXT)
HEALTH = an_object(
    {
        "isHealthy": FLAG,
        "details": {"type": "object", "additionalProperties": PART_HEALTH},
        "serverState": TEXT,
    }
)
COMMAND_STATUS = an_object({"status": TEXT, "message": TEXT, "queryId": {"type": ["string", "null"]}})
COMMAND_STATUSES = an_object({"commandStatuses": {"type": "object", "additionalProperties": TEXT}})
CLUSTER_STATUS = an_object({"clusterStatus": {"type": "object", "additionalProperties": ANY_OBJECT}})

ANSWERS = {
    400: "The request or its statement is wrong",
    403: "The request comes from a page of another site",
    404: "There is no such thing",
    406: "The answer has no such form",
    413: "The body is too large",
    415: "The body is not JSON",
    500: "The server or Kafka failed",
    503: "The server is not ready, or is shutting down",
}


Answers = dict[int | str, dict[str, Any]]


def answers(*codes: int, **forms: Schema) -> Answers:
    """The answers of an endpoint: errors by their status, 200 by the schemas of its forms."""
    errors: Answers = {code: {"description": ANSWERS[code], "content": {JSON: {"schema": ERROR}}} for code in codes}
    content = {FORMS[name]: {"schema": schema} for name, schema in forms.items()}
    return {200: {"description": "Done", "content": content}, **errors}


FORMS = {"json": JSON, "delimited": Form.DELIMITED.value, "streamed": Form.STREAMED.value, "text": "text/plain"}
ILL: dict[str, Any] = {"description": "A part of the server does not work", "content": {JSON: {"schema": HEALTH}}}
POSTED = (400, 403, 413, 415, 500, 503)


def takes(schema: Schema, types: tuple[str, ...] = JSON_TYPES[:2], example: object = None) -> dict[str, Any]:
    """The body that an endpoint takes."""
    shown = {"schema": schema} | ({"example": example} if example is not None else {})
    return {"requestBody": {"required": True, "content": dict.fromkeys(types, shown)}}


def asks(text: str, properties: str) -> Schema:
    """The body of a request for statements or a query."""
    return an_object(
        {text: TEXT},
        **{properties: PLAIN_MAP, "sessionVariables": PLAIN_MAP, "requestProperties": PLAIN_MAP},
    )


STATEMENTS = takes(
    {**asks("ksql", "streamsProperties"), "description": "Statements, each ended by a semicolon"},
    example={"ksql": "SHOW STREAMS; SHOW TABLES;"},
)
QUERY_STREAM = takes(
    asks("sql", "properties"),
    example={"sql": "SELECT * FROM t EMIT CHANGES;", "properties": {"auto.offset.reset": "earliest"}},
)
QUERY = takes(asks("ksql", "streamsProperties"), example={"ksql": "SELECT * FROM t;"})
CLOSE = takes(an_object({"queryId": TEXT}), example={"queryId": "PUSH_T_0123456789AB"})
BACKUP = takes(an_object({}, id={"type": ["string", "null"]}, end=FLAG), example={})
BEGUN = an_object(
    {"id": TEXT},
    seconds={"type": "number"},
    data_dir=TEXT,
    about=ANY_OBJECT,
    files=an_array(an_object({"source": TEXT, "path": TEXT, "bytes": WHOLE})),
)
INSERTS = takes(
    {**TEXT, "description": "First a line {'target': name, 'properties': {…}}, then one JSON object per row and line."},
    types=(LINE_TYPES[-1],),
    example='{"target": "ORDERS"}\n{"ID": "a", "AMOUNT": 5}\n',
)
