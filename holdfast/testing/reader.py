"""Reads tests: ksqlDB's JSON files with our additions, and recorded plans, one per line."""

import json
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

from holdfast.errors import ConfigError
from holdfast.runtime.plan import json_text
from holdfast.testing.case import (
    Case,
    CaseRecord,
    ExpectedError,
    ExpectedRow,
    ExpectedSource,
    ExpectedTopic,
    Header,
    InputStep,
    Malformed,
    Post,
    RowsStep,
    StatementStep,
    Step,
    Window,
)

FORMAT, CONFIG = "{FORMAT}", "{CONFIG}"
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')

STEP_PROPERTIES = {
    "input": {"input"},
    "inputs": {"inputs", "together"},
    "statement": {"statement", "as", "rows", "error"},
    "expect": {"expect", "rows"},
}
"""The kinds of step by their defining property, and all properties that each may have."""


class Unreadable(Exception):
    """A test does not have the expected form."""


def read_cases(paths: Sequence[Path], *, plans: bool = False) -> list[Case | Malformed]:
    """All cases of the files, and of the files in the folders, ordered by file name."""
    found: list[Case | Malformed] = []
    for file in _files(paths, "*.jsonl" if plans else "*.json"):
        found += read_plans(file) if plans else read_file(file)
    return found


def _files(paths: Iterable[Path], pattern: str) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise ConfigError(f"file or folder {path} does not exist")
        files = sorted(path.rglob(pattern)) if path.is_dir() else [path]
        if not files:
            raise ConfigError(f"no tests found in {path}", detail=f"Test files match {pattern}.")
        yield from files


def read_file(file: Path) -> list[Case | Malformed]:
    """The cases of one file, without disabled ones."""
    document = _parse(_COMMENT.sub(lambda found: found[1] or "", _text(file)), file)
    if not isinstance(document, dict) or not isinstance(document.get("tests"), list) or not document["tests"]:
        raise ConfigError(f"{file} has no tests", hint='Write {"tests": [{"name": …, "statements": […]}]}.')
    found: list[Case | Malformed] = []
    for number, raw in enumerate(document["tests"], start=1):
        for name, expanded in _expanded(raw, number):
            if isinstance(expanded, str):
                found.append(Malformed(file.stem, name, expanded))
                continue
            try:
                found.append(_case(expanded, file.stem, name))
            except Unreadable as problem:
                found.append(Malformed(file.stem, name, str(problem)))
    return found


def read_plans(file: Path) -> list[Case | Malformed]:
    """The recorded plans of one file; a case's name ends with the release that wrote its plan."""
    found: list[Case | Malformed] = []
    for line in _text(file).splitlines():
        raw = _parse(line, file)
        if not isinstance(raw, dict):
            raise ConfigError(f"{file} has a line that is not a recorded plan")
        name = " - ".join(str(raw[part]) for part in ("name", "version") if part in raw)
        try:
            documents = _list(raw, "plan")
            found.append(
                Case(
                    file=file.stem,
                    name=name,
                    plans=tuple(map(json_text.write, documents)),
                    properties=_properties(raw),
                    inputs=_records(raw, "inputs"),
                    outputs=_records(raw, "outputs"),
                )
            )
        except Unreadable as problem:
            found.append(Malformed(file.stem, name, str(problem)))
    return _numbered(found)


def _numbered(cases: list[Case | Malformed]) -> list[Case | Malformed]:
    """Number repeated names: one release may have recorded several plans for a test."""
    seen: dict[str, int] = {}
    found: list[Case | Malformed] = []
    for case in cases:
        seen[case.name] = number = seen.get(case.name, 0) + 1
        found.append(replace(case, name=f"{case.name} #{number}") if number > 1 else case)
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{file} cannot be read", detail=f"{problem}.") from None


def _parse(text: str, file: Path) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as problem:
        where = f"{problem.msg}, at line {problem.lineno}, column {problem.colno}."
        raise ConfigError(f"{file} is not JSON", detail=where) from None


# ---- cases


def _expanded(raw: Any, number: int) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """One case for each format and configuration of its matrix, or a text that describes an error."""
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        yield f"test {number}", "a test must be an object with a name"
        return
    if raw.get("enabled") is False:
        return
    formats, configs = raw.get("format") or [None], raw.get("config") or [None]
    properties = raw.get("properties") or {}
    varying = [name for name, value in properties.items() if value == CONFIG] if isinstance(properties, dict) else []
    if configs != [None] and len(varying) != 1:
        yield raw["name"], f'with "config", exactly one property must have the value "{CONFIG}"'
        return
    for format_, config in product(formats, configs):
        name, case = raw["name"], dict(raw)
        if format_ is not None:
            name += f" - {format_}"
            case["statements"] = [str(s).replace(FORMAT, format_) for s in raw.get("statements", [])]
        if config is not None:
            name += f" - {varying[0]}={config}"
            case["properties"] = {**properties, varying[0]: config}
        yield name, case


def _case(raw: Mapping[str, Any], file: str, name: str) -> Case:
    statements = tuple(_text_of(s, "a statement") for s in _list(raw, "statements"))
    steps = tuple(map(_step, _list(raw, "steps")))
    if not statements and not steps:
        raise Unreadable('it has no "statements"')
    error = raw.get("expectedException")
    return Case(
        file=file,
        name=name,
        statements=statements,
        properties=_properties(raw),
        inputs=_records(raw, "inputs"),
        outputs=_records(raw, "outputs"),
        steps=steps,
        expected_error=None if error is None else _error(error),
        post=_post(_object(raw["post"], "post")) if raw.get("post") is not None else None,
        partitions={t["name"]: t["partitions"] for t in _list(raw, "topics") if "name" in t and "partitions" in t},
    )


def _properties(raw: Mapping[str, Any]) -> dict[str, str]:
    fields = _object(raw.get("properties") or {}, "properties")
    return {
        name: value if isinstance(value, str) else json_text.write(value).decode() for name, value in fields.items()
    }


def _records(raw: Mapping[str, Any], name: str) -> tuple[CaseRecord, ...]:
    return tuple(map(_record, _list(raw, name)))


def _record(raw: Any) -> CaseRecord:
    fields = _object(raw, "a record")
    if not isinstance(fields.get("topic"), str):
        raise Unreadable('a record has no "topic"')
    if "value" not in fields:
        raise Unreadable('a record has no "value"; null is a tombstone')
    return CaseRecord(
        topic=fields["topic"],
        key=fields.get("key"),
        value=fields["value"],
        timestamp=fields.get("timestamp"),
        window=_window(fields["window"]) if fields.get("window") is not None else None,
        headers=tuple(map(_header, _list(fields, "headers"))),
    )


def _window(raw: Any) -> Window:
    fields = _object(raw, "a window")
    kind = str(fields.get("type", "")).lower()
    if kind not in ("time", "session") or not all(isinstance(fields.get(end), int) for end in ("start", "end")):
        raise Unreadable('a window must be {"start": ms, "end": ms, "type": "time" or "session"}')
    return Window(fields["start"], fields["end"], kind == "session")


def _header(raw: Any) -> Header:
    fields = {name.upper(): value for name, value in _object(raw, "a header").items()}
    try:
        value = None if fields.get("VALUE") is None else b64decode(fields["VALUE"], validate=True)
        return Header(_text_of(fields.get("KEY"), "the key of a header"), value)
    except (NotBase64, TypeError):
        raise Unreadable("the value of a header must be base64") from None


def _error(raw: Any) -> ExpectedError:
    fields = _object(raw, "an expected error")
    found = ExpectedError(type=fields.get("type"), message=fields.get("message"), sqlstate=fields.get("sqlstate"))
    if found == ExpectedError():
        raise Unreadable('an expected error needs a "type", a "message" or an "sqlstate"')
    return found


def _post(raw: Mapping[str, Any]) -> Post:
    topics = _object(raw.get("topics") or {}, "post.topics")
    return Post(
        sources=tuple(map(_source, _list(raw, "sources"))),
        topics=tuple(map(_topic, _list(topics, "topics"))),
        forbidden_topics=topics.get("blacklist"),
    )


def _source(raw: Any) -> ExpectedSource:
    fields = _object(raw, "a source")
    if "name" not in fields or str(fields.get("type")).lower() not in ("stream", "table"):
        raise Unreadable('a source of "post" needs a "name" and the "type" stream or table')
    return ExpectedSource(
        name=fields["name"],
        kind=fields["type"].lower(),
        schema=fields.get("schema"),
        key_format=fields.get("keyFormat"),
        value_format=_format_name(fields.get("valueFormat")),
        key_features=_features(fields, "keyFeatures"),
        value_features=_features(fields, "valueFeatures"),
        read_only=fields.get("isSource"),
    )


def _features(fields: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    return tuple(fields[name]) if fields.get(name) is not None else None


def _topic(raw: Any) -> ExpectedTopic:
    fields = _object(raw, "a topic")
    return ExpectedTopic(
        name=_text_of(fields.get("name"), "the name of a topic"),
        key_format=_format_name(fields.get("keyFormat")),
        value_format=_format_name(fields.get("valueFormat")),
        partitions=fields.get("partitions"),
    )


def _format_name(raw: Any) -> str | None:
    return raw.get("format") if isinstance(raw, dict) else raw


# ---- steps


def _step(raw: Any) -> Step:
    fields = _object(raw, "a step")
    kinds = [kind for kind in STEP_PROPERTIES if kind in fields]
    if len(kinds) != 1:
        raise Unreadable(f"a step must have exactly one of: {', '.join(STEP_PROPERTIES)}")
    kind = kinds[0]
    for name in fields.keys() - STEP_PROPERTIES[kind]:
        raise Unreadable(f'a step with "{kind}" cannot have "{name}"')
    match kind:
        case "input":
            return InputStep((_record(fields["input"]),))
        case "inputs":
            return InputStep(_records(fields, "inputs"), bool(fields.get("together", False)))
        case "statement":
            rows = tuple(map(_values, _list(fields, "rows"))) if "rows" in fields else None
            error = _error(fields["error"]) if "error" in fields else None
            text = _text_of(fields["statement"], "a statement")
            return StatementStep(text=text, name=fields.get("as"), rows=rows, error=error)
        case _:
            return RowsStep(_text_of(fields["expect"], "expect"), tuple(map(_row, _list(fields, "rows"))))


def _row(raw: Any) -> ExpectedRow:
    if isinstance(raw, dict):
        if raw.keys() != {"tombstone"}:
            raise Unreadable('a row must be a list of values, or {"tombstone": [values]}')
        return ExpectedRow(_values(raw["tombstone"]), tombstone=True)
    return ExpectedRow(_values(raw))


def _values(raw: Any) -> tuple[json_text.JsonValue, ...]:
    if not isinstance(raw, list):
        raise Unreadable("a row must be a list of values")
    return tuple(raw)


# ---- JSON types


def _object(raw: Any, what: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise Unreadable(f"{what} is not an object")
    return raw


def _list(raw: Mapping[str, Any], name: str) -> list[Any]:
    found = raw.get(name)
    if found is not None and not isinstance(found, list):
        raise Unreadable(f'"{name}" is not a list')
    return found or []


def _text_of(raw: Any, what: str) -> str:
    if not isinstance(raw, str):
        raise Unreadable(f"{what} is not a string")
    return raw
