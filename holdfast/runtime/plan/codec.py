"""Plans as JSON documents, both ways.

`encode(decode(document))` is the same JSON document: what was absent, null or a number of a certain scale stays so.
What the vocabulary in `shapes` does not know is refused, never skipped: a step that is half understood is a wrong one.
"""

from holdfast.errors import PlanError
from holdfast.runtime.plan import jsontext
from holdfast.runtime.plan.document import Plan
from holdfast.runtime.plan.forms import ROOT
from holdfast.runtime.plan.shapes import PLAN


def decode(document: bytes) -> Plan:
    """The plan that a document holds. A document that is not a plan of this vocabulary raises `PlanError`."""
    try:
        plan = PLAN.decode(jsontext.read(document), ROOT)
    except RecursionError:
        raise PlanError("plan is nested too deeply") from None
    assert isinstance(plan, Plan)
    return plan


def encode(plan: Plan) -> bytes:
    """The document of a plan, its properties in ksqlDB's order."""
    try:
        return jsontext.write(PLAN.encode(plan))
    except RecursionError:
        raise PlanError("plan is nested too deeply") from None
    except UnicodeEncodeError:
        raise PlanError("plan is not valid Unicode", detail="It has one half of a surrogate pair.") from None
