"""What functions of STRING and BYTES give for values that are easily got wrong."""

from typing import Any

from pyspark.sql import SparkSession

from .engines import unequal

NULL = "CAST(NULL AS STRING)"
NO_BYTES = "CAST(NULL AS BYTES)"


def hexadecimal(digits: str) -> str:
    return f"TO_BYTES('{digits}', 'hex')"


CALLS: list[tuple[str, Any]] = [
    ("CHR(75)", "K"), ("CHR(22909)", "好"), ("CHR(99000)", "𘊸"), ("CHR(-1)", None), ("CHR(1114112)", None),
    ("CHR(1114111)", "\U0010ffff"), ("CHR(55296)", "?"), ("CHR(CAST(NULL AS INT))", None), ("CHR(0)", "\0"),
    (r"CHR('\u004b')", "K"), (r"CHR('\ud820\udeb8')", "𘊸"), ("CHR('75')", None), ("CHR('004b')", None),
    ("CHR('bogus')", None), ("CHR('')", None), (f"CHR({NULL})", None), (r"CHR('\u004bx\u0041')", "KxA"),
    (r"CHR('\u00zz11')", None), (r"CHR('\ud820xx')", None),
    ("INITCAP('some_string')", "Some_string"), ("INITCAP('the   Quick br0wn fOx')", "The   Quick Br0wn Fox"),
    ("INITCAP('  école maTERNELLE')", "École Maternelle"), ("INITCAP('')", ""), (f"INITCAP({NULL})", None),
    ("INITCAP('a-b c''d')", "A-b C'd"),
    ("LPAD('foo', 7, 'Bar')", "BarBfoo"), ("LPAD('foo', 2, 'Bar')", "fo"), ("LPAD('foo', -1, 'Bar')", None),
    ("LPAD('foo', 5, NULL)", None), ("LPAD('foo', NULL, 'Bar')", None), (f"LPAD({NULL}, 5, 'Bar')", None),
    ("LPAD('foo', 7, '')", None), ("LPAD('', 7, 'Bar')", "BarBarB"), ("LPAD('foo', 0, 'x')", ""),
    ("RPAD('foo', 7, 'Bar')", "fooBarB"), ("RPAD('foo', 2, 'Bar')", "fo"), ("RPAD('foo', -1, 'B')", None),
    ("RPAD('é😀', 4, 'x')", "é😀xx"),
    (f"LPAD({hexadecimal('796573')}, 8, {hexadecimal('6e6f')})", b"nononyes"),
    (f"LPAD({hexadecimal('796573')}, 0, {hexadecimal('6e6f')})", b""),
    (f"RPAD({hexadecimal('796573')}, 5, {hexadecimal('6e6f')})", b"yesno"),
    (f"RPAD({hexadecimal('796573')}, 5, {hexadecimal('')})", None), (f"LPAD({NO_BYTES}, 1, {hexadecimal('00')})", None),
    ("ELT(1, 'a', 'b')", "a"), ("ELT(0, 'a')", None), ("ELT(3, 'a', 'b')", None), ("ELT(-1, 'a')", None),
    ("ELT(NULL, 'a')", None), ("ELT(2, 'a', NULL)", None),
    ("FIELD('hello', 'hello', 'world')", 1), ("FIELD('hello', NULL, 'world')", 0), ("FIELD('b', NULL, 'b')", 2),
    (f"FIELD({NULL}, 'a', NULL)", 0), ("FIELD('', 'a', '')", 2),
    ("CONCAT_WS('-', 'a', 'b')", "a-b"), ("CONCAT_WS('-', NULL, 'b', NULL)", "b"), ("CONCAT_WS(NULL, 'a')", None),
    (f"CONCAT_WS('-', {NULL}, NULL)", ""), ("CONCAT_WS('', 'a', '', 'b')", "ab"),
    (f"CONCAT_WS({hexadecimal('61')}, {hexadecimal('62')}, NULL, {hexadecimal('')}, {hexadecimal('63')})", b"baac"),
    (f"CONCAT_WS({hexadecimal('61')}, {NO_BYTES})", b""), (f"CONCAT_WS({NO_BYTES}, {hexadecimal('61')})", None),
    ("SPLIT('a,b,c', ',')", ["a", "b", "c"]), ("SPLIT(',A,', ',')", ["", "A", ""]), ("SPLIT('A,,A', ',')", ["A", "", "A"]),
    ("SPLIT('a.b', '.')", ["a", "b"]), ("SPLIT('a$.b|c', '$.')", ["a", "b|c"]), (r"SPLIT('a\Eb', '\E')", ["a", "b"]),
    ("SPLIT('a😀b', '')", ["a", "😀", "b"]), ("SPLIT('', '')", [""]), ("SPLIT('', ',')", [""]), ("SPLIT('a', NULL)", None),
    (f"SPLIT({NULL}, ',')", None), ("SPLIT('none', ',')", ["none"]),
    (f"SPLIT({hexadecimal('FF00FE00')}, {hexadecimal('00')})", [b"\xff", b"\xfe", b""]),
    (f"SPLIT({hexadecimal('FF0A')}, {hexadecimal('')})", [b"\xff", b"\n"]),
    (f"SPLIT({hexadecimal('12A1')}, {hexadecimal('2A')})", [b"\x12\xa1"]), (f"SPLIT({NO_BYTES}, {NO_BYTES})", None),
    ("SPLIT_TO_MAP('a:1;b:2;;c;a:3:4', ';', ':')", [("a", "3"), ("b", "2")]), ("SPLIT_TO_MAP('a', ';', ':')", []),
    ("SPLIT_TO_MAP('a:b', '', ':')", None), ("SPLIT_TO_MAP('a:b', ';', '')", None), ("SPLIT_TO_MAP('a:b', ':', ':')", None),
    (f"SPLIT_TO_MAP({NULL}, ';', ':')", None), ("SPLIT_TO_MAP(':x;y:', ';', ':')", [("", "x"), ("y", "")]),
    ("SPLIT_TO_MAP('a.*1|b.*2', '|', '.*')", [("a", "1"), ("b", "2")]),
]  # fmt: skip

PATTERNS: list[tuple[str, Any]] = [
    ("REGEXP_EXTRACT('(.*) (.*)', 'steven zhang', 2)", "zhang"), ("REGEXP_EXTRACT('(.*) (.*)', 'agavra', 2)", None),
    ("REGEXP_EXTRACT('.*', '')", ""), ("REGEXP_EXTRACT('a', 'b')", None), ("REGEXP_EXTRACT('(a', 'a')", None),
    ("REGEXP_EXTRACT('(a)', 'a', 3)", None), ("REGEXP_EXTRACT('(a)', 'a', -1)", None), ("REGEXP_EXTRACT(NULL, 'a')", None),
    (f"REGEXP_EXTRACT('a', {NULL})", None), ("REGEXP_EXTRACT('a', 'a', NULL)", None), (r"REGEXP_EXTRACT('\$(\d+)', 'cost $12', 1)", "12"),
    ("REGEXP_EXTRACT_ALL('a.', 'ab ac')", ["ab", "ac"]), ("REGEXP_EXTRACT_ALL('(a)(.)', 'ab ac', 2)", ["b", "c"]),
    ("REGEXP_EXTRACT_ALL('x', 'ab')", []), ("REGEXP_EXTRACT_ALL('(a)', 'ab', 2)", None), ("REGEXP_EXTRACT_ALL('[', 'ab')", None),
    (f"REGEXP_EXTRACT_ALL('a', {NULL})", None), ("REGEXP_EXTRACT_ALL('a', 'a', -1)", None),
    ("REGEXP_REPLACE('foobar', 'o+', '')", "fbar"), ("REGEXP_REPLACE('ab', '(a)(b)', '$2$1')", "ba"),
    ("REGEXP_REPLACE('ab', '(a)', '$7')", None), ("REGEXP_REPLACE('ab', '*', 'x')", None), ("REGEXP_REPLACE('ab', 'a', NULL)", None),
    (f"REGEXP_REPLACE({NULL}, 'a', 'b')", None), ("REGEXP_REPLACE('aé😀', '[^a]', '-')", "a--"),
    ("REGEXP_SPLIT_TO_ARRAY('a1b22c', '[0-9]+')", ["a", "b", "c"]), ("REGEXP_SPLIT_TO_ARRAY('1a1', '[0-9]')", ["", "a", ""]),
    ("REGEXP_SPLIT_TO_ARRAY('abc', '')", ["a", "b", "c"]), ("REGEXP_SPLIT_TO_ARRAY('', '')", [""]),
    ("REGEXP_SPLIT_TO_ARRAY('a1b2', '[0-9]*')", ["a", "b"]), ("REGEXP_SPLIT_TO_ARRAY('11', '[0-9]*')", []),
    ("REGEXP_SPLIT_TO_ARRAY('a', '(')", None), ("REGEXP_SPLIT_TO_ARRAY('a', NULL)", None),
    (f"REGEXP_SPLIT_TO_ARRAY({NULL}, 'a')", None), ("REGEXP_SPLIT_TO_ARRAY('aXb', '(?i)x')", ["a", "b"]),
]  # fmt: skip

MASKS: list[tuple[str, Any]] = [
    ("MASK('AbC 123.é')", "XxX-nnn-x"), ("MASK('')", ""), (f"MASK({NULL})", None), ("MASK('A😀')", "X-"),
    ("MASK('AbC 12', '*', '#', NULL, '_')", "*#*_12"), ("MASK('AbC', '**', NULL, NULL, NULL)", None),
    ("MASK('AbC1', 'b', '1', 'Z', NULL)", "b1bZ"), ("MASK_LEFT('AbC 123', 2)", "XxC 123"), ("MASK_LEFT('Ab', 9)", "Xx"),
    ("MASK_LEFT('Ab', 0)", "Ab"), ("MASK_LEFT('Ab', -1)", None), ("MASK_LEFT('Ab', 2147483647)", "Xx"),
    (f"MASK_LEFT({NULL}, 2)", None), ("MASK_LEFT('Ab', NULL)", None), ("MASK_RIGHT('AbC 123', 2)", "AbC 1nn"),
    ("MASK_RIGHT('Ab', 9)", "Xx"), ("MASK_RIGHT('Ab', -1)", None), ("MASK_KEEP_LEFT('AbC 123', 2)", "AbX-nnn"),
    ("MASK_KEEP_LEFT('Ab', 9)", "Ab"), ("MASK_KEEP_RIGHT('AbC 123', 2)", "XxX-n23"), ("MASK_KEEP_RIGHT('Ab', 0)", "Xx"),
    ("MASK_KEEP_RIGHT('AbC 123', 2, '?', NULL, NULL, NULL)", "?b? 123"), ("MASK_RIGHT('AbC', 1, NULL, NULL, NULL, NULL)", "AbC"),
]  # fmt: skip

ENCODINGS: list[tuple[str, Any]] = [
    ("ENCODE('Example!', 'ascii', 'hex')", "4578616d706c6521"), ("ENCODE('Ελ😀', 'ascii', 'utf8')", "???"),
    ("ENCODE('Example!', 'ascii', 'base64')", "RXhhbXBsZSE="), ("ENCODE('é', 'utf8', 'ascii')", "\ufffd\ufffd"),
    ("ENCODE('é', 'UTF8', 'HEX')", "c3a9"), ("ENCODE('0x123', 'hex', 'base64')", "ASM="), ("ENCODE('X''4142''', 'hex', 'ascii')", "AB"),
    ("ENCODE('4g', 'hex', 'utf8')", None), ("ENCODE('414', 'hex', 'utf8')", None), ("ENCODE('c3a9', 'hex', 'utf8')", "é"),
    ("ENCODE('w6k=', 'base64', 'utf8')", "é"), ("ENCODE('w 6k', 'base64', 'hex')", "c3a9"), ("ENCODE('a', 'hex', 'hex')", None),
    ("ENCODE('a', 'utf8', 'latin1')", None), ("ENCODE('a', NULL, 'hex')", None), (f"ENCODE({NULL}, 'ascii', 'hex')", None),
    ("ENCODE('ff41', 'hex', 'utf8')", "\ufffdA"),
    ("TO_BYTES('IQ==', 'base64')", b"!"), ("TO_BYTES('IQ', 'base64')", b"!"), ("TO_BYTES('I Q', 'base64')", None),
    ("TO_BYTES('4', 'hex')", None), ("TO_BYTES('aBfF', 'hex')", b"\xab\xff"), ("TO_BYTES('é', 'ascii')", b"?"),
    ("TO_BYTES('é', 'utf8')", b"\xc3\xa9"), ("TO_BYTES('x', 'other')", None), ("TO_BYTES('', 'hex')", b""),
    ("FROM_BYTES(TO_BYTES('abff', 'hex'), 'hex')", "ABFF"), ("FROM_BYTES(TO_BYTES('ff', 'hex'), 'utf8')", "\ufffd"),
    ("FROM_BYTES(TO_BYTES('c3a9', 'hex'), 'ascii')", "\ufffd\ufffd"), (f"FROM_BYTES({NO_BYTES}, 'hex')", None),
    ("LEN(FROM_BYTES(TO_BYTES(LPAD('a', 100, 'a'), 'utf8'), 'base64'))", 136), ("FROM_BYTES(TO_BYTES('a', 'utf8'), NULL)", None),
    (f"INT_FROM_BYTES({hexadecimal('FFFFFFFE')})", -2), (f"INT_FROM_BYTES({hexadecimal('FEFFFFFF')}, 'little_endian')", -2),
    (f"INT_FROM_BYTES({hexadecimal('7FFFFFFF')})", 2**31 - 1), (f"INT_FROM_BYTES({hexadecimal('01')})", None),
    (f"INT_FROM_BYTES({hexadecimal('00000001')}, 'middle')", None), (f"INT_FROM_BYTES({NO_BYTES})", None),
    (f"BIGINT_FROM_BYTES({hexadecimal('8000000000000000')})", -(2**63)), (f"BIGINT_FROM_BYTES({hexadecimal('FF' * 8)})", -1),
    (f"BIGINT_FROM_BYTES({hexadecimal('7F' + 'FF' * 7)}, 'BIG_ENDIAN')", 2**63 - 1), (f"BIGINT_FROM_BYTES({hexadecimal('00')})", None),
    (f"DOUBLE_FROM_BYTES({hexadecimal('400921FB54442D18')})", 3.141592653589793), (f"DOUBLE_FROM_BYTES({hexadecimal('0000000000000001')})", 5e-324),
    (f"DOUBLE_FROM_BYTES({hexadecimal('7FEFFFFFFFFFFFFF')})", 1.7976931348623157e308), (f"DOUBLE_FROM_BYTES({hexadecimal('FFF0000000000000')})", float("-inf")),
    (f"DOUBLE_FROM_BYTES({hexadecimal('7FF8000000000000')})", float("nan")), (f"DOUBLE_FROM_BYTES({hexadecimal('BFE0000000000000')})", -0.5),
    (f"DOUBLE_FROM_BYTES({hexadecimal('000000000000F83F')}, 'LITTLE_ENDIAN')", 1.5), (f"DOUBLE_FROM_BYTES({hexadecimal('00')})", None),
    ("MD5('')", "d41d8cd98f00b204e9800998ecf8427e"), (f"MD5({NULL})", None), ("MD5('é')", "8a9a28c5b1b2e6e5d37dbe2cdfe7d43c"),
    ("LEN(UUID())", 36), ("UUID() = UUID()", False), (f"UUID({hexadecimal('00')})", None), (f"UUID({NO_BYTES})", None),
]  # fmt: skip


def test_strings(spark: SparkSession) -> None:
    wrong = unequal(spark, [*CALLS, *PATTERNS, *MASKS, *ENCODINGS])
    assert not wrong, "\n".join(wrong)
