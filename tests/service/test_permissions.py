"""Statements that a server which others can reach refuses."""

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.config import Settings, load
from holdfast.errors import NotPermitted
from holdfast.service.permissions import Permissions
from holdfast.sql.syntax.parse import statements

FUNCTION = "CREATE FUNCTION f(a INT) RETURNS INT LANGUAGE PYTHON AS 'def f(a): return a';"
DELETION = "DROP TABLE t DELETE TOPIC;"


@pytest.fixture
def local(tmp_path: Path) -> Settings:
    return load({"data_dir": tmp_path}, environment={})


def check(settings: Settings, text: str) -> None:
    [parsed] = statements(text)
    Permissions(settings).check(parsed.statement)


@pytest.mark.parametrize("text", [FUNCTION, DELETION, "DROP TABLE t;", "SHOW TABLES;"])
def test_everything_is_allowed_on_loopback(local: Settings, text: str) -> None:
    check(local, text)
    check(replace(local, http_host="::1"), text)


@pytest.mark.parametrize(("text", "setting"), [(FUNCTION, "python_functions"), (DELETION, "topic_deletion")])
def test_beyond_loopback_they_have_to_be_switched_on(local: Settings, text: str, setting: str) -> None:
    reachable = replace(local, http_host="0.0.0.0", insecure=True)
    with pytest.raises(NotPermitted, match="switched off on this server") as raised:
        check(reachable, text)
    assert (raised.value.sqlstate, f"-s {setting}=true" in (raised.value.hint or "")) == ("42501", True)
    check(replace(reachable, **{setting: True}), text)
    check(reachable, "DROP TABLE t;")
    with pytest.raises(NotPermitted):
        check(replace(local, **{setting: False}), text)
