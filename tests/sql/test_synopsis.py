from holdfast.sql.syntax.synopsis import keywords, synopses


def texts(rule: str) -> list[str]:
    return [each.text for each in synopses() if each.rule == rule]


def test_statements_are_shown_as_they_are_written() -> None:
    assert texts("drop") == ["DROP {STREAM | TABLE} [IF EXISTS] name [DELETE TOPIC] [CASCADE]"]
    assert texts("insert_values") == ["INSERT INTO name [(name, …)] VALUES (expression, …)"]
    assert texts("unset_property") == ["UNSET 'text'"]
    assert texts("create_as")[0].endswith("[WITH ([name = value, …])] AS query")


def test_the_clauses_of_a_query_are_shown_in_their_order() -> None:
    (select,) = texts("query")
    places = [select.index(f"[{word}") for word in ("WHERE", "GROUP BY", "HAVING", "EMIT", "LIMIT")]
    assert places == sorted(places)


def test_a_synopsis_is_found_by_its_words_in_order() -> None:
    assert {each.rule for each in synopses() if each.is_about(["CREATE", "TABLE", "AS"])} == {"create_as"}
    assert [each.rule for each in synopses() if each.is_about(["DROP", "TABLE"])] == ["drop"]
    assert not any(each.is_about([]) or each.is_about(["TABLE"]) for each in synopses())


def test_keywords_are_those_of_statements_and_expressions() -> None:
    assert {"SELECT", "EMIT", "BETWEEN", "STRUCT"} <= keywords()
    assert "IDENT" not in keywords()
