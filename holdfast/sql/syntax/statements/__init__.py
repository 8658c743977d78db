"""Parsed statements: one frozen class per statement. A module has the statements of one subject and the transformer
that builds them from the rules of the grammar.

Positions are for errors and are ignored in comparisons.
"""

from holdfast.sql.syntax.explain_format import *  # noqa: F403
from holdfast.sql.syntax.statements.elements import *  # noqa: F403
from holdfast.sql.syntax.statements.functions import *  # noqa: F403
from holdfast.sql.syntax.statements.holds import *  # noqa: F403
from holdfast.sql.syntax.statements.indexes import *  # noqa: F403
from holdfast.sql.syntax.statements.inserts import *  # noqa: F403
from holdfast.sql.syntax.statements.inspection import *  # noqa: F403
from holdfast.sql.syntax.statements.query import *  # noqa: F403
from holdfast.sql.syntax.statements.query_control import *  # noqa: F403
from holdfast.sql.syntax.statements.relations import *  # noqa: F403
from holdfast.sql.syntax.statements.session import *  # noqa: F403
from holdfast.sql.syntax.statements.statement import *  # noqa: F403
from holdfast.sql.syntax.statements.subscribe import *  # noqa: F403
from holdfast.sql.syntax.statements.topics import *  # noqa: F403
from holdfast.sql.syntax.statements.types import *  # noqa: F403
from holdfast.sql.syntax.statements.views import *  # noqa: F403
