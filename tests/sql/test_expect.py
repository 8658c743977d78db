import pytest

from holdfast.sql.syntax.expect import Kind, expected_after


@pytest.mark.parametrize(
    ("text", "keywords", "kind"),
    [
        ("", {"CREATE", "SELECT", "SHOW"}, None),
        ("SHOW", {"STREAMS", "TABLES"}, None),
        ("DROP STREAM", {"IF"}, Kind.RELATION),
        ("SELECT", {"CASE", "DISTINCT"}, Kind.EXPRESSION),
        ("SELECT a, UCASE(", {"CASE"}, Kind.EXPRESSION),
        ("SELECT a FROM", set(), Kind.RELATION),
        ("select a from t", {"WHERE", "EMIT", "GROUP"}, None),
        ("SELECT a FROM t WHERE", {"NOT"}, Kind.EXPRESSION),
        ("SELECT a FROM t EMIT", {"CHANGES"}, None),
        ("CREATE STREAM s (a", {"ARRAY"}, Kind.TYPE),
        ("CREATE STREAM s (a INT) WITH (", set(), Kind.PROPERTY),
        ("INSERT INTO t (", set(), Kind.COLUMN),
        ("TERMINATE", {"ALL"}, Kind.QUERY),
        ("PAUSE", {"ALL"}, Kind.QUERY),
        ("RESUME", {"ALL"}, Kind.QUERY),
    ],
)
def test_what_can_come_next(text: str, keywords: set[str], kind: Kind | None) -> None:
    found = expected_after(text)
    assert keywords <= found.keywords
    assert found.kind is kind


@pytest.mark.parametrize(
    "text", ["SELECT a AS", "CREATE STREAM s (", "SELECT 'open", "CREATE NONSENSE", "SELECT a FROM t WHERE )"]
)
def test_nothing_is_expected_where_the_user_invents_or_errs(text: str) -> None:
    found = expected_after(text)
    assert (found.keywords, found.kind) == (frozenset(), None)
