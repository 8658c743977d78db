"""Parses requests: the JSON body, its properties, and the accepted media type of the response."""

import re
from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.requests import HTTPConnection, Request

from holdfast.server.problems import Code, Problem
from holdfast.server.sql_request import SqlRequest
from holdfast.sql.properties.session import plain_name

MAX_BODY = 16 << 20
MAX_TEXT = 1 << 20
"""Characters of a request's statements: parsing many more would take seconds."""
MAX_DISCARDED = 4 * MAX_BODY
"""Bytes of a rejected body that are read and discarded: a client reads the response only after sending everything."""

JSON_TYPES = ("application/json", "application/vnd.ksql.v1+json", "application/x-www-form-urlencoded", "")
"""curl sends the third by default and ksqlDB's Java client sends none; the body is JSON all the same."""
LINE_TYPES = (*JSON_TYPES, "application/vnd.ksqlapi.delimited.v1")


class RowFormat(StrEnum):
    """The media types of result rows."""

    DELIMITED = "application/vnd.ksqlapi.delimited.v1"
    ARRAY = "application/json"
    STREAMED = "application/vnd.ksql.v1+json"
    ARROW = "application/vnd.apache.arrow.stream"


async def read_object(request: Request) -> Mapping[str, Any]:
    """The JSON object in a request's body."""
    # Before the checks: see MAX_DISCARDED.
    content = await read_body(request)
    check_origin(request)
    check_type(request, JSON_TYPES)
    return as_object(content, "the body")


def as_object(content: bytes, what: str) -> Mapping[str, Any]:
    try:
        loaded = orjson.loads(content)
    except orjson.JSONDecodeError as cause:
        raise Problem(Code.BAD_REQUEST, f"{what} is not JSON: {cause}") from None
    if not isinstance(loaded, dict):
        raise Problem(Code.BAD_REQUEST, f"{what} is not a JSON object")
    return loaded


def check_type(request: Request, known: tuple[str, ...]) -> None:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type not in known:
        raise Problem(
            Code.WRONG_CONTENT_TYPE,
            f'content type "{content_type}" is not supported',
            hint="Send JSON, with the header Content-Type: application/json.",
        )


def check_origin(request: HTTPConnection) -> None:
    """Reject requests from pages of other sites: a browser lets them post to a server on its user's machine."""
    origin = request.headers.get("origin")
    if origin is not None and site(origin) != request.headers.get("host"):
        raise Problem(Code.FORBIDDEN, f'requests from pages of "{origin}" are not allowed')


def site(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


async def read_body(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size <= MAX_BODY:
            parts.append(part)
        elif size > MAX_DISCARDED:
            break
    if size > MAX_BODY:
        raise Problem(
            Code.TOO_LARGE,
            f"the body is larger than {MAX_BODY >> 20} MiB",
            hint="Send the statements in several requests.",
        )
    return b"".join(parts)


async def lines(parts: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The lines of a body as they arrive, in batches, without empty ones."""
    rest = b""
    async for part in parts:
        *complete, rest = (rest + part).split(b"\n")
        if len(rest) > MAX_BODY:
            raise Problem(Code.TOO_LARGE, f"a line is longer than {MAX_BODY >> 20} MiB")
        if batch := [line for line in complete if line.strip()]:
            yield batch
    if rest.strip():
        yield [rest]


def sql_request(body: Mapping[str, Any], *names: str) -> SqlRequest:
    """The request in a body; its SQL is in the first field of `names` that is present."""
    text = next((body[name] for name in names if name in body), None)
    if not isinstance(text, str):
        raise Problem(Code.BAD_REQUEST, f'"{names[0]}" is missing or not a string')
    if len(text) > MAX_TEXT:
        raise Problem(
            Code.TOO_LARGE,
            f"the statements have {len(text):,} characters; the limit is {MAX_TEXT:,}",
            hint="Send them in several requests; send rows to /inserts-stream.",
        )
    properties = {**string_map(body, "streamsProperties"), **string_map(body, "properties")}
    variables = {name.upper(): value for name, value in string_map(body, "sessionVariables").items()}
    return SqlRequest(
        text,
        {plain_name(name): value for name, value in properties.items()},
        string_map(body, "requestProperties"),
        variables,
    )


def string_map(body: Mapping[str, Any], name: str) -> dict[str, str]:
    """A field of the body with scalar values by name, as strings without nulls."""
    found = body.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Problem(Code.BAD_REQUEST, f'"{name}" must be an object')
    return {key: as_text(name, key, value) for key, value in found.items() if value is not None}


def as_text(container: str, name: str, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case _:
            raise Problem(Code.BAD_REQUEST, f'"{name}" in "{container}" must be a string, a number or a boolean')


def accepted_format(accept: str | None, *, default: RowFormat) -> RowFormat:
    """The format that an Accept header prefers; the first of equals."""
    best, best_weight = None, 0.0
    for choice in (accept or "*/*").split(","):
        name, _, parameters = choice.partition(";")
        weight = re.search(r"\bq=([0-9.]+)", parameters)
        try:
            value = float(weight[1]) if weight else 1.0
        except ValueError:
            value = 1.0
        found = format_named(name.strip().lower(), default)
        if found is not None and value > best_weight:
            best, best_weight = found, value
    if best is None:
        raise Problem(
            Code.NOT_ACCEPTABLE, f'"{accept}" is not available', hint=f"Accept one of: {', '.join(RowFormat)}."
        )
    return best


def format_named(name: str, default: RowFormat) -> RowFormat | None:
    if name in ("*/*", "application/*", ""):
        return default
    return next((each for each in RowFormat if each == name), None)
