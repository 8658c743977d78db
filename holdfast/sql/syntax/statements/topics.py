"""PRINT and ASSERT of topics."""

from dataclasses import dataclass, field

from lark import Token

from holdfast.errors import Position, SyntaxProblem
from holdfast.runtime.expressions.transform import position_of, unquote
from holdfast.runtime.plan.windows import WindowTime
from holdfast.sql.syntax.statements.elements import Property
from holdfast.sql.syntax.statements.parts import Children, ClausePart, Flag, flags, pick


@dataclass(frozen=True, slots=True, kw_only=True)
class Print:
    """`PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n]`: every n-th record. Topic names keep their case."""

    topic: str
    from_beginning: bool = False
    interval: int = 1
    limit: int | None = None
    position: Position | None = field(default=None, compare=False, repr=False)
    topic_position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertTopic:
    """`ASSERT [NOT EXISTS] TOPIC topic [WITH (…)] [TIMEOUT …]`."""

    topic: str
    exists: bool = True
    properties: tuple[Property, ...] = ()
    timeout: WindowTime | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSchema:
    """`ASSERT [NOT EXISTS] SCHEMA [SUBJECT name] [ID n] [TIMEOUT …]`."""

    position: Position | None = field(default=None, compare=False, repr=False)


TopicStatement = Print | AssertTopic | AssertSchema


class TopicTransformer:
    """Builds these statements from the rules of the grammar."""

    def print(self, children: Children) -> Print:
        topic, limit, sample = children[1], pick(children, ClausePart), pick(children, int)
        return Print(
            topic=_topic(topic),
            from_beginning="from_beginning" in flags(children),
            interval=1 if sample is None else sample,
            limit=limit.value if limit else None,
            position=position_of(children[0]),
            topic_position=position_of(topic),
        )

    def topic(self, children: Children) -> Token:
        token: Token = children[0]
        return token

    def from_beginning(self, _: Children) -> Flag:
        return Flag("from_beginning")

    def sample(self, children: Children) -> int:
        number = int(str(children[0]))
        if number < 1:
            raise SyntaxProblem("INTERVAL must be at least 1", position=position_of(children[0]))
        return number

    def assert_topic(self, children: Children) -> AssertTopic:
        with_ = pick(children, ClausePart)
        topic = next(child for child in children[1:] if isinstance(child, Token))
        return AssertTopic(
            topic=_topic(topic),
            exists="not_exists" not in flags(children),
            properties=with_.value if with_ else (),
            timeout=pick(children, WindowTime),
            position=position_of(children[0]),
        )

    def assert_schema(self, children: Children) -> AssertSchema:
        return AssertSchema(position=position_of(children[0]))

    def not_exists(self, _: Children) -> Flag:
        return Flag("not_exists")

    def timeout(self, children: Children) -> WindowTime:
        span: WindowTime = children[0]
        return span


def _topic(token: Token) -> str:
    """The name of a topic; its case is kept."""
    return str(token) if token.type == "IDENT" else unquote(str(token))
