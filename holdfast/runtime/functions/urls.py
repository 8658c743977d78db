"""Functions of URLs, as java.net.URI takes them apart. What is no URL gives NULL."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template
from holdfast.runtime.functions.sparksql import let, text
from holdfast.types import Scalar

CATEGORY = "URL"
STRING, INTEGER = Scalar.STRING, Scalar.INTEGER

_URL = "https://user@example.com:8080/a%20b/c?x=1&y=two%26#top"


def _part(name: str) -> str:
    return f"try_parse_url({{0}}, '{name}')"


def _decoded(sql: str) -> str:
    """A part of a URL with its percent signs decoded; a plus stays one there."""
    return f"try_url_decode(replace({sql}, '+', '%2B'))"


def _port(a: Arguments) -> str:
    """An authority that has no host has no port either."""
    url = a.texts[0]
    port = f"regexp_extract(try_parse_url({url}, 'AUTHORITY'), {text(':([0-9]+)$')}, 1)"
    return f"CASE WHEN try_parse_url({url}, 'HOST') IS NOT NULL THEN try_cast(nullif({port}, '') AS INT) END"


def _parameter(a: Arguments) -> str:
    """The first one with that name; one without a value has an empty one."""
    url, wanted = a.texts
    query = _decoded(f"try_parse_url({url}, 'QUERY')")
    named = f"filter(split({query}, '&', -1), p_ -> substring_index(p_, '=', 1) = {wanted})"
    return let(f"get({named}, 0)", lambda p: f"substring({p}, length({wanted}) + 2)", "first_")


def _function(
    name: str, doc: str, spark: Template, *examples: Example, returns: Scalar = STRING, more: tuple[str, ...] = ()
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        arguments=("url" if "EXTRACT" in name else "text", *more),
        doc=doc,
        forms=(ScalarForm(parameters=(STRING, *(STRING for _ in more)), returns=returns, spark=spark, duckdb=None),),
        examples=examples,
    )


FUNCTIONS = (
    _function(
        "URL_ENCODE_PARAM",
        "A text as the value of a URL's parameter.",
        "url_encode({0})",
        Example(call="URL_ENCODE_PARAM('a b&c')", gives="'a+b%26c'"),
    ),
    _function(
        "URL_DECODE_PARAM",
        "The text that the value of a URL's parameter stands for.",
        "try_url_decode({0})",
        Example(call="URL_DECODE_PARAM('a%20b+c')", gives="'a b c'"),
    ),
    _function(
        "URL_EXTRACT_PROTOCOL",
        "The protocol of a URL.",
        _part("PROTOCOL"),
        Example(call=f"URL_EXTRACT_PROTOCOL('{_URL}')", gives="'https'"),
    ),
    _function(
        "URL_EXTRACT_HOST",
        "The host of a URL.",
        _part("HOST"),
        Example(call=f"URL_EXTRACT_HOST('{_URL}')", gives="'example.com'"),
    ),
    _function(
        "URL_EXTRACT_PORT",
        "The port of a URL; NULL when it has none.",
        _port,
        Example(call=f"URL_EXTRACT_PORT('{_URL}')", gives="8080"),
        returns=INTEGER,
    ),
    _function(
        "URL_EXTRACT_PATH",
        "The path of a URL.",
        _decoded(_part("PATH")),
        Example(call=f"URL_EXTRACT_PATH('{_URL}')", gives="'/a b/c'"),
    ),
    _function(
        "URL_EXTRACT_QUERY",
        "The query of a URL; NULL when it has none.",
        _decoded(_part("QUERY")),
        Example(call="URL_EXTRACT_QUERY('http://example.com/?a=1&b=2')", gives="'a=1&b=2'"),
    ),
    _function(
        "URL_EXTRACT_FRAGMENT",
        "What stands after the # of a URL; NULL when there is none.",
        _decoded(_part("REF")),
        Example(call=f"URL_EXTRACT_FRAGMENT('{_URL}')", gives="'top'"),
    ),
    _function(
        "URL_EXTRACT_PARAMETER",
        "The value of a parameter in the query of a URL, empty when it has none; NULL when there is no such parameter.",
        _parameter,
        Example(call="URL_EXTRACT_PARAMETER('http://example.com/?a=1&b=2', 'b')", gives="'2'"),
        more=("parameter",),
    ),
)
