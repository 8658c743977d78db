"""Maps ksqlDB's error messages to ours.

A test written for ksqlDB expects ksqlDB's message. Each row has a pattern of such a message and the phrases that our
error must contain instead, with names, types and expressions copied from the message. If several rows match a message,
any of them may apply.
"""

import re
from collections.abc import Iterator

_OPERATORS = {
    "EQUAL": "=",
    "NOT_EQUAL": "<>",
    "LESS_THAN": "<",
    "LESS_THAN_OR_EQUAL": "<=",
    "GREATER_THAN": ">",
    "GREATER_THAN_OR_EQUAL": ">=",
}
_FORMAT = r"(?:'(?P<format>\w+)' )?format "
_CANNOT_HOLD = ("format {format}", "of type {type}", "cannot hold column")

# fmt: off
_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # ---- syntax
    (r"line \d+:(?P<column>\d+): Syntax Error\nExpecting .*INTEGER_VALUE",
     ("syntax error at or near", "column {column}", "a whole number")),
    (r"Syntax error at or near '(?P<word>\w+)' at line \d+:(?P<column>\d+)",
     ('syntax error at or near "{word}" at line 1, column {column}',)),
    (r"Syntax Error\nUnknown statement '(?P<word>\w+)'", ('syntax error at or near "{word}"',)),
    (r"\ASyntax Error\Z", ("syntax error at or near",)),
    (r"Invalid numeric literal: (?P<number>-?\d+)", ("the number {number} does not fit BIGINT",)),
    (r"Number overflows DOUBLE: -?(?P<number>\S+)", ("the number {number} does not fit DOUBLE",)),
    # ---- names
    (r"SELECT column '(?P<name>\w+)' cannot be resolved", ('column "{name}" does not exist',)),
    (r"PARTITION BY column '(?P<name>\w+)' cannot be resolved", ('column "{name}" does not exist',)),
    (r"JOIN ON column '(?:\w+\.)?(?P<name>\w+)' cannot be resolved", ('column "{name}" does not exist',)),
    (r"TIMESTAMP column set in the WITH clause does not exist in the schema: '(?P<name>\w+)'",
     ('column "{name}" does not exist',)),
    (r"'(?P<name>\w+)' is not a valid stream/table name or alias", ('relation "{name}" does not exist',)),
    (r"(?P<kind>Stream|Table) (?P<name>\w+) does not exist", ('{kind} "{name}" does not exist',)),
    (r"Col: (?P<column>\d+): Source `(?P<name>\w+)` does not exist", ('"{name}" does not exist', "column {column}")),
    (r"Cannot insert values into an unknown stream/table: `(?P<name>\w+)`\nDid you mean \"(?P<close>\w+)\"",
     ('"{name}" does not exist', 'Did you mean "{close}"?')),
    (r"Can't find any functions with the name '(?P<name>\w+)'", ('function "{name}" does not exist',)),
    (r"Reserved column name in select: `(?P<name>\w+)`", ('a column cannot be named "{name}"',)),
    (r"[`'](?P<name>\w+)[`'] is a reserved column name", ('a column cannot be named "{name}"',)),
    # ---- types of expressions
    (r"Cannot compare (?P<left>.+) to (?P<right>.+) with (?P<operator>\w+)\.",
     ("cannot compare {left} with {right} using {operator}",)),
    (r"Comparison with NULL not supported", ("a comparison with NULL is never true",)),
    (r"Type error in (?P<clause>\w+) expression: Should evaluate to boolean but is .* \((?P<type>.+)\) instead",
     ("{clause} must be BOOLEAN, not {type}",)),
    (r"Error processing expression: .* Unsupported arithmetic types\. (?P<left>\w+) (?P<right>\w+)",
     ("cannot compute {left}", " {right}")),
    (r"All case branches have NULL type", ("the type of this CASE is not known",)),
    (r"Cannot construct an array with all NULL elements", ("the type of this ARRAY is not known",)),
    (r"Cannot construct a map with all NULL (?P<part>keys|values)",
     ("the type of the {part} of this MAP is not known",)),
    (r"Can't infer a type of null", ("the type of NULL is not known here",)),
    (r"Cast of (?P<source>.+) to (?P<target>.+) is not supported", ("cannot cast {source} to {target}",)),
    (r"invalid input syntax for type (?P<type>[^:]+): (?P<text>\".*\")", ("{text} is not of type {type}",)),
    (r"operator does not exist: (?!DECIMAL)(?P<left>.+) = (?P<right>.+?) \((?P<text>.+)\)(?:\n|\Z)",
     ("({left}) with {text} ({right}) using =",)),
    (r"operator does not exist: DECIMAL\(\d+, \d+\) = (?P<right>.+?) \((?P<text>.+)\)(?:\n|\Z)",
     ("(DECIMAL(", ") with {text} ({right}) using =")),
    # ---- calls
    (r"Function '(?P<function>\w+)' does not accept parameters \((?P<types>[^\n]*)\)",
     ("function {function} does not take ({types})",)),
    (r"Function '(?P<function>\w+)' cannot be resolved due to ambiguous method parameters \((?P<types>.*)\)",
     ("function {function} cannot choose a type for ({types})",)),
    (r"Parameter (?P<index>\d+) passed to function (?P<function>\w+) must be a literal constant, .*: '(?P<text>.*)'",
     ("argument {index} of {function} must be a constant, not {text}",)),
    (r"Table functions cannot be used with aggregations", ("the table function", "cannot be used in an aggregation")),
    # ---- GROUP BY
    (r"Non-aggregate SELECT expression\(s\) not part of GROUP BY(?:: (?P<text>.+?))?(?:, \w+)*(?:\n|\Z)",
     ("is neither aggregated nor in GROUP BY", "{text}")),
    (r"does not support aggregate function \[(?P<function>\w+)\(.*\)\] without a GROUP BY",
     ("the aggregate {function} needs a GROUP BY",)),
    (r"Duplicate GROUP BY expression: (?:\w+\.)?(?P<text>.+)", ("GROUP BY has {text} twice",)),
    (r"Aggregate functions can not be nested: (?P<outer>\w+)\((?P<inner>\w+)\(",
     ("aggregates cannot be nested: {inner} in {outer}",)),
    (r"GROUP BY requires aggregate functions in either the SELECT or HAVING", ("GROUP BY needs an aggregate",)),
    (r"WINDOW clause requires a GROUP BY", ("WINDOW needs a GROUP BY",)),
    (r"Window bounds column (?P<name>\w+) can only be used in the SELECT", ("cannot use {name}", "bounds of a window")),
    (r"Source\(s\) (?P<name>\w+) are using the 'KAFKA' value format.* support (?P<clause>GROUP BY|JOIN)",
     ('{clause} cannot read "{name}", whose value format is KAFKA',)),
    # ---- formats
    (r"Unknown format: (?P<name>\w+)", ('format "{name}" does not exist',)),
    (rf"(?:The )?{_FORMAT}does not support type '(?P<type>\w+)'", _CANNOT_HOLD),
    (r"The 'KAFKA' format only supports a single field. Got: \[`(?P<first>\w+)` \S+(?: KEY)?, `(?P<second>\w+)`",
     ("format KAFKA holds one column, not 2: {first}, {second}",)),
    (r"'NONE' format can only be used when no columns are defined. Got: \[`(?P<name>\w+)`",
     ("format NONE holds no columns, not {name}",)),
    (r"Configuration (?P<property>\w+) is invalid: Invalid delimiter value: (?P<text>'.*?')\. ",
     ("property {property} must be one character or SPACE or TAB, not {text}",)),
    (r"Configuration (?P<property>\w+) is invalid: Delimiter cannot be empty",
     ("property {property} must be one character or SPACE or TAB",)),
    (r"Statement is missing the '(?P<property>\w+)' property from the WITH clause", ("{property} is missing",)),
    (r"Cannot supply both '(?P<one>\w+)' and 'FORMAT' properties", ("FORMAT and {one} cannot both be given",)),
    (r"'WRAP_SINGLE_VALUE' is only valid for single-field", ("WRAP_SINGLE_VALUE needs exactly one value column",)),
    (r"Format '(?P<format>\w+)' does not support 'WRAP_SINGLE_VALUE' set to 'true'",
     ("format {format} does not take WRAP_SINGLE_VALUE = TRUE",)),
    (r"Key format specified for stream without key columns", ("KEY_FORMAT is given, but the result has no key",)),
    (r"'WINDOW_SIZE' should not be set for SESSION", ("WINDOW_SIZE cannot be set for SESSION windows",)),
    (r"Timestamp column, `(?P<name>\w+)`, should be LONG", ('TIMESTAMP column "{name}" must be',)),
    # ---- keys
    (r"Column `(?P<name>\w+)` is a 'KEY' column: please use 'PRIMARY KEY'",
     ('column "{name}" of a table cannot be KEY',)),
    (r"Column `(?P<name>\w+)` is a 'PRIMARY KEY' column: please use 'KEY'",
     ('column "{name}" of a stream cannot be PRIMARY KEY',)),
    (r"Tables require a PRIMARY KEY", ("a table needs a PRIMARY KEY",)),
    (r"Windowed sources require a key column", ("a windowed topic needs a key column",)),
    (r"Map keys, including types that contain maps, .* Column type: (?P<type>.+)\. See",
     ("of type {type} cannot be or contain a MAP",)),
    (r"must include the key columns? .+ in its projection \(eg, SELECT (?P<keys>.+)\.\.\.\)",
     ("is missing from the select list", "Write SELECT {keys}, …")),
    (r"must include the join expressions? .+ in its projection \(eg, SELECT (?P<keys>.+)\.\.\.\)",
     ("the join column {keys}", "is missing from the select list")),
    (r"Primary key columns? missing in projection.*\(`(?P<table>\w+)`\)\. Missing columns?: `(?P<first>\w+)`",
     ("the key column {table}.{first} is missing from the select list",)),
    (r"The projection contains a key column .* more than once, aliased as: (?P<one>\w+) and (?P<two>\w+)",
     ("is selected more than once", "{one}", "{two}")),
    (r"Cannot PARTITION BY multiple columns including NULL", ("PARTITION BY NULL cannot be combined",)),
    # ---- joins
    (r"Invalid join condition: types don't match\. Got .+\{(?P<left>.+)\} = .+\{(?P<right>.+)\}",
     ("a join needs the same type on both sides, not {left} = {right}",)),
    (r"-table joins require to join on the .*primary key.* Got (?:\w+\.)?(?P<left>\w+) = (?:\w+\.)?(?P<right>\w+)",
     ("must be on its primary key", "{left} = ", "{right})")),
    (r"foreign-key table-table joins are not supported as part of n-way joins\. Got \w+\.(?P<left>\w+) =",
     ("a join on a foreign key must be the first of several", "{left} =")),
    (r"Invalid comparison expression '(?P<side>.+)' in join '(?P<text>.+)'\. ",
     ("each side of a join's condition must name columns of one relation: {side} in {text}",)),
    (r"joins on multiple conditions are not yet supported. Got (?P<text>.+)\.",
     ("a join needs one condition of the form a = b, not {text}",)),
    (r"Each side of the join must reference exactly one source and not the same source",
     ("must compare it with an earlier relation",)),
    (r"A join criteria is expected to reference the source \(`(?P<name>\w+)`\)",
     ("the condition of the join with {name} must compare it with an earlier relation",)),
    (r"Can not join '(?P<name>\w+)' to '\w+': self joins", ("{name} cannot be joined with itself",)),
    (r"N-way joins do not support multiple occurrences of the same source\. Source: '(?P<name>\w+)'",
     ('two relations of the query are called "{name}"',)),
    (r"Implicit repartitioning of windowed sources", ("a windowed stream or table cannot get another key",)),
    (r"Implicit repartitioning of windowed sources", ("their keys are windowed differently",)),
    (r"`(?P<left>\w+)` is (?P<one>.+) windowed\n`(?P<right>\w+)` is (?P<two>.+)",
     ("{left} is {one} windowed, {right} is {two}",)),
    (r"full-outer join not supported for stream-table join", ("a stream with a table cannot be FULL OUTER",)),
    (r"table-stream joins are not supported.* Got (?P<left>\w+) .*JOIN (?P<right>\w+)",
     ("the table {left} cannot be joined with the stream {right}",)),
    # ---- statements that change things
    (r"Cannot insert (?:values )?into read-only stream: (?P<name>\w+)", ('stream "{name}" is read only',)),
    (r"Cannot delete topic for read-only source: (?P<name>\w+)", ('"{name}" cannot be deleted',)),
    (r"Cannot add (?P<kind>\w+) '(?P<name>\w+)': CREATE OR REPLACE is not supported on source",
     ('SOURCE {kind} "{name}" cannot be replaced',)),
    (r"Cannot alter (?P<kind>\w+) '(?P<name>\w+)': ALTER operations are not supported on source",
     ('{kind} "{name}" is a SOURCE and cannot be altered',)),
    (r"Incompatible schema between results and sink", ("the columns of the query do not match those of",)),
    (r"INSERT INTO can only be used to insert into a stream\. (?P<name>\w+) is a table",
     ('needs a stream, but "{name}" is a table',)),
    (r"Cannot insert into (?P<name>\w+) because it has header columns",
     ('cannot insert into "{name}", which has HEADER columns',)),
    (r"Invalid type for (?P<written>HEADER\(.*\)) column: expected BYTES, got (?P<type>\w+)",
     ("the {written} column", "must be BYTES, not {type}")),
)
# fmt: on

_PATTERNS = tuple((re.compile(pattern, re.DOTALL), ours) for pattern, ours in _ROWS)
_STATEMENT = re.compile(r"\nStatement: .*", re.DOTALL)


def our_phrases(message: str) -> Iterator[tuple[str, ...]]:
    """The phrases that our error must contain for a message of ksqlDB: alternatives, one per matching row."""
    text = _STATEMENT.sub("", message)
    for pattern, ours in _PATTERNS:
        found = pattern.search(text)
        if found is not None:
            names = {name: _OPERATORS.get(text or "", text or "") for name, text in found.groupdict().items()}
            yield tuple(phrase.format_map(names) for phrase in ours)
