"""Conversions between bytes and strings. A value that is invalid in its encoding becomes NULL."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template
from holdfast.runtime.functions.spark_sql import latin, let, text
from holdfast.types import Scalar

CATEGORY = "STRING"
STRING, BYTES, INTEGER, BIGINT, DOUBLE = Scalar.STRING, Scalar.BYTES, Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE

_NOT_ASCII = text(r"[^\x00-\x7f]")
_BASE64 = text(r"\A[A-Za-z0-9+/]*={0,2}\z")
_NOT_BASE64 = text("[^A-Za-z0-9+/]")
_HEX = text(r"\A(?:[0-9a-fA-F]{2})*+\z")


def _choose(encoding: str, choices: dict[str, str]) -> str:
    cases = " ".join(f"WHEN '{name}' THEN {sql}" for name, sql in choices.items())
    return f"CASE lower({encoding}) {cases} END"


def _hexadecimal(value: str) -> str:
    return f"CASE WHEN {value} RLIKE {_HEX} THEN unhex({value}) END"


def _ascii(value: str) -> str:
    return f"encode(regexp_replace({value}, {_NOT_ASCII}, '?'), 'US-ASCII')"


def _loose_base64(value: str) -> str:
    """Skips characters outside the base64 alphabet, and a last character that completes no byte."""
    valid = f"regexp_replace(translate({value}, '-_', '+/'), {_NOT_BASE64}, '')"
    return let(valid, lambda k: f"unbase64(substring({k}, 1, length({k}) - IF(length({k}) % 4 = 1, 1, 0)))", "kept_")


def _prefixed_hexadecimal(value: str) -> str:
    """Hexadecimal as 0x12, x'12', X'12' or 12; only the first may have an odd number of digits."""
    zero = f"concat(IF(length({value}) % 2 = 1, '0', ''), substring({value}, 3))"
    quoted = f"substring({value}, 3, length({value}) - 3)"
    bare = (
        f"CASE WHEN {value} RLIKE {text('^0x')} THEN {zero}"
        f" WHEN {value} RLIKE {text(chr(94) + '[xX]' + chr(39) + '.*' + chr(39) + '$')} THEN {quoted} ELSE {value} END"
    )
    return let(bare, _hexadecimal, "hex_")


def _plain_base64(value: str) -> str:
    return f"replace(base64({value}), {text(chr(13) + chr(10))}, '')"


def _ascii_text(value: str) -> str:
    return f"regexp_replace({latin(value)}, {_NOT_ASCII}, {text(chr(0xFFFD))})"


def _utf8_text(value: str) -> str:
    return f"make_valid_utf8(CAST({value} AS STRING))"


def _encode(arguments: Arguments) -> str:
    subject, source, target = arguments.texts

    def body(value: str) -> str:
        decoded = _choose(
            source,
            {
                "hex": _prefixed_hexadecimal(value),
                "utf8": f"encode({value}, 'UTF-8')",
                "ascii": _ascii(value),
                "base64": _loose_base64(value),
            },
        )
        return let(decoded, encoded, "bytes_")

    def encoded(value: str) -> str:
        return _choose(
            target,
            {
                "hex": f"lower(hex({value}))",
                "utf8": _utf8_text(value),
                "ascii": _ascii_text(value),
                "base64": _plain_base64(value),
            },
        )

    return f"CASE WHEN lower({source}) <> lower({target}) THEN {let(subject, body)} END"


def _to_bytes(arguments: Arguments) -> str:
    subject, encoding = arguments.texts

    def body(value: str) -> str:
        return _choose(
            encoding,
            {
                "hex": _hexadecimal(value),
                "utf8": f"encode({value}, 'UTF-8')",
                "ascii": _ascii(value),
                "base64": f"CASE WHEN {value} RLIKE {_BASE64} THEN try_to_binary({value}, 'base64') END",
            },
        )

    return let(subject, body)


def _from_bytes(arguments: Arguments) -> str:
    subject, encoding = arguments.texts

    def body(value: str) -> str:
        return _choose(
            encoding,
            {
                "hex": f"hex({value})",
                "utf8": _utf8_text(value),
                "ascii": _ascii_text(value),
                "base64": _plain_base64(value),
            },
        )

    return let(subject, body)


def _digits(arguments: Arguments, size: int) -> str:
    """The hexadecimal digits, most significant byte first; NULL unless there are `size` bytes."""
    value, *order = arguments.texts
    ordered = value
    if order:
        ordered = (
            f"CASE upper({order[0]}) WHEN 'BIG_ENDIAN' THEN {value} WHEN 'LITTLE_ENDIAN' THEN reverse({value}) END"
        )
    return f"CASE WHEN octet_length({value}) = {size} THEN hex({ordered}) END"


def _integer(arguments: Arguments) -> str:
    return f"CAST(CAST(conv({_digits(arguments, 4)}, 16, 10) AS BIGINT) AS INT)"


def _bigint(arguments: Arguments) -> str:
    return f"CAST(conv({_digits(arguments, 8)}, 16, -10) AS BIGINT)"


def _double(arguments: Arguments) -> str:
    """Decodes 64 bits as an IEEE 754 number."""

    def body(bits: str) -> str:
        sign = f"CAST(IF({bits} < 0, -1, 1) AS DOUBLE)"
        exponent = f"(shiftrightunsigned({bits}, 52) & 2047)"
        fraction = f"({bits} & 4503599627370495)"
        return (
            f"CASE {exponent} WHEN 2047 THEN IF({fraction} = 0, {sign} * double('Infinity'), double('NaN'))"
            f" WHEN 0 THEN {sign} * {fraction} * pow(2, -1074)"
            f" ELSE {sign} * ({fraction} + 4503599627370496) * pow(2, {exponent} - 1075) END"
        )

    return let(_bigint(arguments), body, "bits_")


def _from(name: str, returns: Scalar, size: int, template: Template, call: str, gives: str) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        category="CONVERSIONS",
        arguments=("bytes", "order"),
        doc=f"Converts {size} bytes to {returns}. The byte order is BIG_ENDIAN by default, or LITTLE_ENDIAN. NULL for "
        "any other number of bytes.",
        forms=tuple(
            ScalarForm(parameters=(BYTES, *order), returns=returns, spark=template, duckdb=None)
            for order in ((), (STRING,))
        ),
        examples=(Example(call=call, gives=gives),),
    )


FUNCTIONS = (
    ScalarFunction(
        name="ENCODE",
        arguments=("text", "from", "to"),
        doc="Converts a string from one encoding to another. Encodings are hex, utf8, ascii and base64.",
        forms=(ScalarForm(parameters=(STRING, STRING, STRING), returns=STRING, spark=_encode, duckdb=None),),
        examples=(Example(call="ENCODE('Example!', 'ascii', 'hex')", gives="'4578616d706c6521'"),),
    ),
    ScalarFunction(
        name="TO_BYTES",
        arguments=("text", "encoding"),
        doc="Converts a string to BYTES. Encodings are hex, utf8, ascii and base64.",
        forms=(ScalarForm(parameters=(STRING, STRING), returns=BYTES, spark=_to_bytes, duckdb=None),),
        examples=(Example(call="LEN(TO_BYTES('48656c6c6f', 'hex'))", gives="5"),),
    ),
    ScalarFunction(
        name="FROM_BYTES",
        arguments=("bytes", "encoding"),
        doc="Converts BYTES to a string. Encodings are hex, utf8, ascii and base64.",
        forms=(ScalarForm(parameters=(BYTES, STRING), returns=STRING, spark=_from_bytes, duckdb=None),),
        examples=(Example(call="FROM_BYTES(TO_BYTES('hello', 'utf8'), 'base64')", gives="'aGVsbG8='"),),
    ),
    _from("INT_FROM_BYTES", INTEGER, 4, _integer, "INT_FROM_BYTES(TO_BYTES('000003E8', 'hex'))", "1000"),
    _from(
        "BIGINT_FROM_BYTES",
        BIGINT,
        8,
        _bigint,
        "BIGINT_FROM_BYTES(TO_BYTES('E803000000000000', 'hex'), 'LITTLE_ENDIAN')",
        "CAST(1000 AS BIGINT)",
    ),
    _from("DOUBLE_FROM_BYTES", DOUBLE, 8, _double, "DOUBLE_FROM_BYTES(TO_BYTES('3FF8000000000000', 'hex'))", "1.5E0"),
    ScalarFunction(
        name="MD5",
        arguments=("text",),
        doc="Returns the MD5 hash of a string in UTF-8, as 32 hexadecimal digits.",
        forms=(ScalarForm(parameters=(STRING,), returns=STRING, spark="md5({0})", duckdb="md5({0})"),),
        examples=(Example(call="MD5('r1')", gives="'7c92cf1eee8d99cc85f8355a3d6e4b86'"),),
    ),
    ScalarFunction(
        name="UUID",
        arguments=("bytes",),
        doc="Returns a random UUID, or the UUID that 16 bytes represent.",
        forms=(
            # Spark's uuid() is seeded when a query is planned, and a plan runs many times.
            ScalarForm(parameters=(), returns=STRING, spark="reflect('java.util.UUID', 'randomUUID')", duckdb=None),
            ScalarForm(
                parameters=(BYTES,),
                returns=STRING,
                spark=lambda a: (
                    f"CASE WHEN octet_length({a.texts[0]}) = 16 THEN regexp_replace(lower(hex({a.texts[0]})),"
                    f" {text('^(.{8})(.{4})(.{4})(.{4})(.{12})$')}, {text('$1-$2-$3-$4-$5')}) END"
                ),
                duckdb=None,
            ),
        ),
        examples=(
            Example(
                call="UUID(TO_BYTES('0123456789abcdef0123456789ABCDEF', 'hex'))",
                gives="'01234567-89ab-cdef-0123-456789abcdef'",
            ),
        ),
    ),
)
