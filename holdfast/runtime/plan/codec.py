"""Plans as JSON documents, both ways.

`encode(decode(document))` is the same JSON document: absent properties, nulls and the scale of numbers are preserved.
Anything that `vocabulary` does not know is rejected, never skipped: a partly understood step computes wrong results.
"""

from holdfast.errors import PlanError
from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.document import Plan
from holdfast.runtime.plan.property_types import ROOT
from holdfast.runtime.plan.vocabulary import PLAN


def decode(document: bytes) -> Plan:
    """The plan in a document. Raises `PlanError` for a document that is not a plan of this vocabulary."""
    try:
        plan = PLAN.decode(json_text.read(document), ROOT)
    except RecursionError:
        raise PlanError("plan is nested too deeply") from None
    assert isinstance(plan, Plan)
    return plan


def encode(plan: Plan) -> bytes:
    """The document of a plan, its properties in ksqlDB's order."""
    try:
        return json_text.write(PLAN.encode(plan))
    except RecursionError:
        raise PlanError("plan is nested too deeply") from None
    except UnicodeEncodeError:
        raise PlanError("plan is not valid Unicode", detail="It contains an unpaired surrogate.") from None
