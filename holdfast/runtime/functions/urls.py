"""URL functions. URLs are parsed as java.net.URI does; an invalid URL gives NULL."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template
from holdfast.runtime.functions.spark_sql import let, text
from holdfast.types import Scalar

CATEGORY = "URL"
STRING, INTEGER = Scalar.STRING, Scalar.INTEGER

_URL = "https://user@example.com:8080/a%20b/c?x=1&y=two%26#top"


def _part(name: str) -> str:
    return f"try_parse_url({{0}}, '{name}')"


def _decoded(sql: str) -> str:
    """A percent-decoded part of a URL; a plus sign stays a plus sign."""
    return f"try_url_decode(replace({sql}, '+', '%2B'))"


def _port(a: Arguments) -> str:
    """An authority that has no host has no port either."""
    url = a.texts[0]
    port = f"regexp_extract(try_parse_url({url}, 'AUTHORITY'), {text(':([0-9]+)$')}, 1)"
    return f"CASE WHEN try_parse_url({url}, 'HOST') IS NOT NULL THEN try_cast(nullif({port}, '') AS INT) END"


def _parameter(a: Arguments) -> str:
    """The first parameter with that name; an empty string if it has no value."""
    url, name = a.texts
    query = _decoded(f"try_parse_url({url}, 'QUERY')")
    named = f"filter(split({query}, '&', -1), p_ -> substring_index(p_, '=', 1) = {name})"
    return let(f"get({named}, 0)", lambda p: f"substring({p}, length({name}) + 2)", "first_")


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
        "Encodes a string for use as a URL parameter.",
        "url_encode({0})",
        Example(call="URL_ENCODE_PARAM('a b&c')", gives="'a+b%26c'"),
    ),
    _function(
        "URL_DECODE_PARAM",
        "Decodes the value of a URL parameter.",
        "try_url_decode({0})",
        Example(call="URL_DECODE_PARAM('a%20b+c')", gives="'a b c'"),
    ),
    _function(
        "URL_EXTRACT_PROTOCOL",
        "Returns the protocol of a URL.",
        _part("PROTOCOL"),
        Example(call=f"URL_EXTRACT_PROTOCOL('{_URL}')", gives="'https'"),
    ),
    _function(
        "URL_EXTRACT_HOST",
        "Returns the host of a URL.",
        _part("HOST"),
        Example(call=f"URL_EXTRACT_HOST('{_URL}')", gives="'example.com'"),
    ),
    _function(
        "URL_EXTRACT_PORT",
        "Returns the port of a URL. NULL if it has none.",
        _port,
        Example(call=f"URL_EXTRACT_PORT('{_URL}')", gives="8080"),
        returns=INTEGER,
    ),
    _function(
        "URL_EXTRACT_PATH",
        "Returns the path of a URL.",
        _decoded(_part("PATH")),
        Example(call=f"URL_EXTRACT_PATH('{_URL}')", gives="'/a b/c'"),
    ),
    _function(
        "URL_EXTRACT_QUERY",
        "Returns the query string of a URL. NULL if it has none.",
        _decoded(_part("QUERY")),
        Example(call="URL_EXTRACT_QUERY('http://example.com/?a=1&b=2')", gives="'a=1&b=2'"),
    ),
    _function(
        "URL_EXTRACT_FRAGMENT",
        "Returns the fragment of a URL, the part after the #. NULL if it has none.",
        _decoded(_part("REF")),
        Example(call=f"URL_EXTRACT_FRAGMENT('{_URL}')", gives="'top'"),
    ),
    _function(
        "URL_EXTRACT_PARAMETER",
        "Returns the value of a parameter in a URL's query string, or an empty string if it has no value. NULL "
        "if there is no such parameter.",
        _parameter,
        Example(call="URL_EXTRACT_PARAMETER('http://example.com/?a=1&b=2', 'b')", gives="'2'"),
        more=("parameter",),
    ),
)
