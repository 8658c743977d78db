"""Functions that mask characters of a string."""

from holdfast.runtime.functions.declaration import Arguments, Example, ScalarForm, ScalarFunction, Template
from holdfast.runtime.functions.parameters import Parameter
from holdfast.runtime.functions.spark_sql import let, text
from holdfast.types import Scalar

CATEGORY = "STRING"
STRING, INTEGER = Scalar.STRING, Scalar.INTEGER

_KINDS = (r"\p{Lu}", r"\p{Ll}", r"\p{Nd}", r"[^\p{Lu}\p{Ll}\p{Nd}]")
_MASKS = "Xxn-"
_RULES = (
    "Upper-case letters become X, lower-case letters x, digits n, and other characters -. Four more arguments "
    "set other mask characters for these kinds; NULL leaves a kind unmasked."
)


def _default(part: str) -> str:
    """The order of the kinds ensures that no mask character is masked again."""
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


def _mask_all(arguments: Arguments) -> str:
    subject, *masks = arguments.texts
    return _masked(subject, tuple(masks))


def _side(left: bool, keep: bool) -> Template:
    """Masks (or keeps) the first or last characters; the second argument is their number."""

    def write(arguments: Arguments) -> str:
        subject, count, *masks = arguments.texts

        def body(value: str) -> str:
            bounded = f"least({count}, length({value}))"
            boundary = bounded if left else f"(length({value}) - {bounded})"
            start, end = f"substring({value}, 1, {boundary})", f"substring({value}, {boundary} + 1)"
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
        "Masks every character of a string.",
        _mask_all,
        False,
        Example(call="MASK('My Test $123')", gives="'Xx-Xxxx--nnn'"),
        Example(call="MASK('My Test $123', '*', NULL, '1', NULL)", gives="'*y *est $111'"),
    ),
    _function(
        "MASK_LEFT",
        "Masks the first characters of a string.",
        _side(left=True, keep=False),
        True,
        Example(call="MASK_LEFT('My Test $123', 4)", gives="'Xx-Xest $123'"),
    ),
    _function(
        "MASK_RIGHT",
        "Masks the last characters of a string.",
        _side(left=False, keep=False),
        True,
        Example(call="MASK_RIGHT('My Test $123', 4)", gives="'My Test -nnn'"),
    ),
    _function(
        "MASK_KEEP_LEFT",
        "Masks all but the first characters of a string.",
        _side(left=True, keep=True),
        True,
        Example(call="MASK_KEEP_LEFT('My Test $123', 4)", gives="'My Txxx--nnn'"),
    ),
    _function(
        "MASK_KEEP_RIGHT",
        "Masks all but the last characters of a string.",
        _side(left=False, keep=True),
        True,
        Example(call="MASK_KEEP_RIGHT('My Test $123', 4)", gives="'Xx-Xxxx-$123'"),
    ),
)
