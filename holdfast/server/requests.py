"""What a request asks for: its JSON body, its properties and the form of the answer."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.requests import HTTPConnection, Request

from holdfast.server.problems import Code, Problem
from holdfast.sql.session import plain_name

MAX_BODY = 16 << 20
MAX_TEXT = 1 << 20
"""Characters of a request's statements: reading many more would take seconds of a processor."""
READ_ANYWAY = 4 * MAX_BODY
"""So much of a body that is not wanted is read and dropped: a client reads our answer only once it has sent all."""

JSON_TYPES = ("application/json", "application/vnd.ksql.v1+json", "application/x-www-form-urlencoded", "")
"""The last two are what curl sends by default and what ksqlDB's Java client sends; the body is JSON all the same."""
LINE_TYPES = (*JSON_TYPES, "application/vnd.ksqlapi.delimited.v1")


class Form(StrEnum):
    """The forms that rows can be sent in."""

    DELIMITED = "application/vnd.ksqlapi.delimited.v1"
    ARRAY = "application/json"
    STREAMED = "application/vnd.ksql.v1+json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for statements to be run or a query to be answered; names of variables are in upper case."""

    text: str
    properties: Mapping[str, str]
    request_properties: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def options(self) -> Mapping[str, str]:
        """Those of the answer's form; clients that cannot set request properties set them with the others."""
        return {**self.properties, **self.request_properties}


async def read_object(request: Request) -> Mapping[str, Any]:
    """The JSON object that a request carries."""
    # Also of a request that is refused: see READ_ANYWAY.
    content = await read_body(request)
    check_origin(request)
    check_type(request, JSON_TYPES)
    return as_object(content, "the body")


def as_object(content: bytes, what: str) -> Mapping[str, Any]:
    try:
        given = orjson.loads(content)
    except orjson.JSONDecodeError as cause:
        raise Problem(Code.BAD_REQUEST, f"{what} is not JSON: {cause}") from None
    if not isinstance(given, dict):
        raise Problem(Code.BAD_REQUEST, f"{what} is not a JSON object")
    return given


def check_type(request: Request, known: tuple[str, ...]) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in known:
        raise Problem(
            Code.WRONG_CONTENT_TYPE,
            f'content type "{given}" is not supported',
            hint="Send JSON, with the header Content-Type: application/json.",
        )


def check_origin(request: HTTPConnection) -> None:
    """Refuse pages of other sites: a browser would let them post to a server on its user's machine."""
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
        elif size > READ_ANYWAY:
            break
    if size > MAX_BODY:
        raise Problem(
            Code.TOO_LARGE,
            f"the body is larger than {MAX_BODY >> 20} MiB",
            hint="Send the statements in several requests.",
        )
    return b"".join(parts)


async def lines(parts: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The lines of a body as they come, those that come together together; empty ones are left out."""
    rest = b""
    async for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        if len(rest) > MAX_BODY:
            raise Problem(Code.TOO_LARGE, f"a line is longer than {MAX_BODY >> 20} MiB")
        if kept := [line for line in whole if line.strip()]:
            yield kept
    if rest.strip():
        yield [rest]


def asked(body: Mapping[str, Any], *names: str) -> Asked:
    """The request of a body whose text is in the first of `names` that it has."""
    text = next((body[name] for name in names if name in body), None)
    if not isinstance(text, str):
        raise Problem(Code.BAD_REQUEST, f'"{names[0]}" must be given, and be a text')
    if len(text) > MAX_TEXT:
        raise Problem(
            Code.TOO_LARGE,
            f"the statements have {len(text):,} characters, and may have {MAX_TEXT:,}",
            hint="Send them in several requests; rows can be given to /inserts-stream.",
        )
    properties = {**named(body, "streamsProperties"), **named(body, "properties")}
    variables = {name.upper(): value for name, value in named(body, "sessionVariables").items()}
    return Asked(
        text,
        {plain_name(name): value for name, value in properties.items()},
        named(body, "requestProperties"),
        variables,
    )


def named(body: Mapping[str, Any], name: str) -> dict[str, str]:
    """An object of plain values, each as text; null is as if it were not there."""
    given = body.get(name)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Problem(Code.BAD_REQUEST, f'"{name}" must be an object')
    return {key: as_text(name, key, value) for key, value in given.items() if value is not None}


def as_text(place: str, name: str, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case _:
            raise Problem(Code.BAD_REQUEST, f'"{name}" in "{place}" must be a text, a number or a boolean')


def wanted_form(accept: str | None, *, otherwise: Form, known: tuple[Form, ...] = tuple(Form)) -> Form:
    """The form that an Accept header likes best; of equals, the one named first."""
    best, best_weight = None, 0.0
    for choice in (accept or "*/*").split(","):
        name, _, parameters = choice.partition(";")
        weight = re.search(r"\bq=([0-9.]+)", parameters)
        try:
            value = float(weight[1]) if weight else 1.0
        except ValueError:
            value = 1.0
        form = form_named(name.strip().lower(), otherwise)
        if form in known and value > best_weight:
            best, best_weight = form, value
    if best is None:
        raise Problem(
            Code.NOT_ACCEPTABLE, f'no form of this answer is "{accept}"', hint=f"There are: {', '.join(known)}."
        )
    return best


def form_named(name: str, otherwise: Form) -> Form | None:
    if name in ("*/*", "application/*", ""):
        return otherwise
    return next((form for form in Form if form == name), None)
