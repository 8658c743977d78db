"""Files of tests: their matrices, their comments, and what is wrong with them."""

import json

import pytest

from holdfast.errors import ConfigError
from holdfast.testing.case import Case, Malformed
from holdfast.testing.reader import read_cases, read_file
from holdfast.testing.suite import select_cases

TEST = {"name": "t", "statements": ["SELECT '{FORMAT}';"]}


def read(folder, *tests):
    file = folder / "cases.json"
    file.write_text(json.dumps({"tests": tests}))
    return read_file(file)


def test_a_matrix_is_one_case_for_each_of_its_values(tmp_path):
    test = {**TEST, "format": ["JSON", "AVRO"], "config": ["1", "2"], "properties": {"p": "{CONFIG}", "q": 3}}
    cases = read(tmp_path, test)
    assert [case.name for case in cases] == ["t - JSON - p=1", "t - JSON - p=2", "t - AVRO - p=1", "t - AVRO - p=2"]
    last = cases[-1]
    assert isinstance(last, Case)
    assert last.statements == ("SELECT 'AVRO';",)
    assert last.properties == {"p": "2", "q": "3"}


def test_a_case_can_be_switched_off_and_files_may_have_comments(tmp_path):
    file = tmp_path / "commented.json"
    file.write_text('{"tests": [ // two\n {"name": "off", "enabled": false}, {"name": "a", "statements": ["//b"]}]}')
    (case,) = read_file(file)
    assert isinstance(case, Case)
    assert case.statements == ("//b",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"statements": []}, 'it has no "statements"'),
        ({"inputs": [{"value": 1}]}, 'a record has no "topic"'),
        ({"inputs": [{"topic": "t"}]}, 'a record has no "value"; null is a tombstone'),
        ({"outputs": {"a": 1}}, '"outputs" is not a list'),
        ({"expectedException": {}}, 'an expected error needs a "type", a "message" or an "sqlstate"'),
        ({"config": ["1"]}, 'with "config", exactly one property must have the value "{CONFIG}"'),
        ({"post": {"sources": [{"name": "x"}]}}, 'a source of "post" needs a "name" and the "type" stream or table'),
    ],
)
def test_a_case_that_is_wrong_says_why_and_leaves_the_others_alone(tmp_path, change, message):
    wrong, right = read(tmp_path, {**TEST, **change}, {**TEST, "name": "u"})
    assert isinstance(right, Case)
    assert (wrong.reason if isinstance(wrong, Malformed) else None) == message


def test_files_that_are_no_tests_are_refused(tmp_path):
    (tmp_path / "a.json").write_text("{")
    for path, message in [(tmp_path / "none.json", "does not exist"), (tmp_path / "a.json", "is not JSON")]:
        with pytest.raises(ConfigError, match=message):
            read_cases([path])
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ConfigError, match="has no tests"):
        read_cases([tmp_path])


def test_a_pattern_chooses_by_file_and_name(tmp_path):
    cases = read(tmp_path, {**TEST, "name": "Large orders"}, {**TEST, "name": "small orders"})
    assert [case.name for case in select_cases(cases, "large")] == ["Large orders"]
    assert [case.name for case in select_cases(cases, "cases*orders")] == ["Large orders", "small orders"]
    assert select_cases(cases, "none") == []
