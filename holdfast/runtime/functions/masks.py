"""Hiding characters of a text."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template
from holdfast.runtime.functions.parameters import Parameter
from holdfast.runtime.functions.sparksql import let, text
from holdfast.types import Scalar

CATEGORY = "STRING"
STRING, INTEGER = Scalar.STRING, Scalar.INTEGER

_KINDS = (r"\p{Lu}", r"\p{Ll}", r"\p{Nd}", r"[^\p{Lu}\p{Ll}\p{Nd}]")
_MASKS = "Xxn-"
_RULES = (
    "Upper-case letters become X, lower-case ones x, digits n, all else -; four more arguments give other "
    "characters for these, and NULL leaves a kind as it is."
)


def _default(part: str) -> str:
    """In this order no mask is masked again."""
    for kind, mask in zip(_KINDS, _MASKS, strict=True):
        part = f"regexp_replace({part}, {text(kind)}, {text(mask)})"
    return part


def _custom(part: str, masks: tuple[str, ...]) -> str:
    cases = " ".join(
        f"WHEN c_ RLIKE {text(kind)} THEN COALESCE({mask}, c_)" for kind, mask in zip(_KINDS, masks, strict=True)
    )
    masked = f"array_join(transform(regexp_extract_all({part}, {text('(?s).')}, 0), c_ -> CASE {cases} END), '')"
    single = " AND ".join(f"COALESCE(length({mask}) = 1, TRUE)" for mask in masks)
    return f"CASE WHEN {single} THEN {masked} END"


def _masked(part: str, masks: tuple[str, ...]) -> str:
    return _custom(part, masks) if masks else _default(part)


def _whole(arguments: Arguments) -> str:
    subject, *masks = arguments.texts
    return _masked(subject, tuple(masks))


def _side(left: bool, keep: bool) -> Template:
    """Masks (or keeps) as many characters of one side as the second argument says."""

    def write(arguments: Arguments) -> str:
        subject, count, *masks = arguments.texts

        def body(value: str) -> str:
            kept = f"least({count}, length({value}))"
            place = kept if left else f"(length({value}) - {kept})"
            start, end = f"substring({value}, 1, {place})", f"substring({value}, {place} + 1)"
            if left != keep:
                start = _masked(start, tuple(masks))
            else:
                end = _masked(end, tuple(masks))
            return f"CASE WHEN {count} >= 0 THEN concat({start}, {end}) END"

        return let(subject, body)

    return write


def _function(name: str, what: str, template: Template, counted: bool, *examples: Example) -> ScalarFunction:
    count: tuple[Parameter, ...] = (INTEGER,) if counted else ()
    return ScalarFunction(
        name=name,
        arguments=("text", *(("count",) if counted else ()), "upper", "lower", "digit", "other"),
        doc=f"{what} {_RULES}",
        forms=(
            ScalarForm(parameters=(STRING, *count), returns=STRING, spark=template, duckdb=None),
            ScalarForm(parameters=(STRING, *count, *(STRING,) * 4), returns=STRING, spark=template, duckdb=None),
        ),
        examples=examples,
    )


FUNCTIONS = (
    _function(
        "MASK",
        "The text with every character masked.",
        _whole,
        False,
        Example(call="MASK('My Test $123')", gives="'Xx-Xxxx--nnn'"),
        Example(call="MASK('My Test $123', '*', NULL, '1', NULL)", gives="'*y *est $111'"),
    ),
    _function(
        "MASK_LEFT",
        "The text with its first characters masked.",
        _side(left=True, keep=False),
        True,
        Example(call="MASK_LEFT('My Test $123', 4)", gives="'Xx-Xest $123'"),
    ),
    _function(
        "MASK_RIGHT",
        "The text with its last characters masked.",
        _side(left=False, keep=False),
        True,
        Example(call="MASK_RIGHT('My Test $123', 4)", gives="'My Test -nnn'"),
    ),
    _function(
        "MASK_KEEP_LEFT",
        "The text with all but its first characters masked.",
        _side(left=True, keep=True),
        True,
        Example(call="MASK_KEEP_LEFT('My Test $123', 4)", gives="'My Txxx--nnn'"),
    ),
    _function(
        "MASK_KEEP_RIGHT",
        "The text with all but its last characters masked.",
        _side(left=False, keep=True),
        True,
        Example(call="MASK_KEEP_RIGHT('My Test $123', 4)", gives="'Xx-Xxxx-$123'"),
    ),
)
