"""The syntax of every statement as text, generated from the grammar, so that help and documentation agree with it.

    DROP {STREAM | TABLE} [IF EXISTS] name [DELETE TOPIC]

Words in upper case are keywords, those in lower case are placeholders; `[…]` is optional, `{… | …}` is a choice, and
`, …` means that more can follow.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Token, Tree

from holdfast.runtime.expressions.parse import read_grammar

GRAMMAR = Path(__file__).with_name("grammar.lark")

PLACEHOLDERS = {
    "expression": "expression",
    "value": "expression",
    "primary": "expression",
    "expression_list": "expression, …",
    "identifier": "name",
    "alias": "name",
    "topic": "topic",
    "type": "type",
    "literal": "value",
    "property": "name = value",
    "with_item": "name = value",
    "query": "query",
    "union_part": "UNION [ALL] query",
    "relation": "relation",
    "span": "n unit",
    "STRING": "'text'",
    "INTEGER": "n",
}
"""Rules and tokens that are shown as a placeholder."""
MORE = ", …"
EXTENSIONS = re.compile(r"^%extend .*\n(?: +\|.*\n)*", re.MULTILINE)
"""Extensions of expression rules, which Lark's own grammar of grammars does not support."""


@dataclass(frozen=True, slots=True)
class Synopsis:
    """One form of a statement. `rule` is its name in the grammar."""

    rule: str
    text: str

    def is_about(self, words: Sequence[str]) -> bool:
        """Whether the statement begins with the first word and contains the others in this order."""
        own = re.findall(r"[A-Z_]+", _mandatory(self.text))
        if not words or own[:1] != [words[0]]:
            return False
        remaining = iter(own)
        return all(word in remaining for word in words)


@cache
def synopses() -> tuple[Synopsis, ...]:
    """Every form of every statement, in the order of the grammar."""
    return tuple(_Rules(read_grammar(GRAMMAR)).all())


def by_rule(found: Sequence[Synopsis]) -> dict[str, list[Synopsis]]:
    """The forms of each statement."""
    rules: dict[str, list[Synopsis]] = {}
    for each in found:
        rules.setdefault(each.rule, []).append(each)
    return rules


@cache
def keywords() -> frozenset[str]:
    """Every keyword of the grammar."""
    return frozenset(re.findall(r'"([A-Z_]+)"', read_grammar(GRAMMAR)))


class _Rules:
    """The rules of a grammar, parsed with Lark's own grammar of grammars."""

    def __init__(self, grammar: str) -> None:
        meta = Path(lark.__file__).with_name("grammars") / "lark.lark"
        tree = Lark.open(str(meta), parser="lalr").parse(EXTENSIONS.sub("", grammar))
        self._rules: dict[str, Any] = {}
        self._inlined: set[str] = set()
        self._tokens: dict[str, str] = {}
        for item in tree.children:
            if not isinstance(item, Tree) or item.data not in ("rule", "token"):
                continue
            name, body = str(item.children[0]), item.children[-1]
            if item.data == "rule":
                self._rules[name.lstrip("?!")] = body
                if name.startswith("?"):
                    self._inlined.add(name.lstrip("?!"))
            elif (word := _literal(body)) is not None:
                self._tokens[name] = word
        self._statements = [_tokens(each)[0] for each in _alternatives(self._rules["statement"])]

    def all(self) -> Iterator[Synopsis]:
        for rule in self._statements:
            for form in _alternatives(self._rules[rule]):
                yield Synopsis(rule, _tidy(self._text(form)))

    def _text(self, node: Any) -> str:
        match node:
            case Tree(data="alias", children=[inner, *_]):
                return self._text(inner)
            case Tree(data="expansions", children=children):
                texts = list(dict.fromkeys(map(self._text, children)))
                return "{" + " | ".join(texts) + "}" if len(texts) > 1 else texts[0]
            case Tree(data="expansion", children=children):
                return " ".join(filter(None, self._joined(children)))
            case Tree(data="expr", children=[inner, operator, *_]):
                return self._repeated(inner, str(operator or ""))
            case Tree(data="literal", children=[Token() as text]):
                return _unquoted(text)
            case Tree(data="name", children=[Token() as name]):
                return self._named(str(name))
            case _:
                raise AssertionError(f"the grammar has a {node!r}, which help cannot show")

    def _joined(self, parts: Sequence[Any]) -> list[str]:
        """The texts of a sequence; `x ("," x)*` is shown as `x, …`."""
        texts: list[str] = []
        for part in parts:
            text = self._text(part)
            if texts and text in (f"[, {texts[-1]}]…", f", {texts[-1]}…"):
                texts[-1] = texts[-1] if texts[-1].endswith(MORE) else texts[-1] + MORE
            else:
                texts.append(text)
        return texts

    def _repeated(self, inner: Any, operator: str) -> str:
        if operator == "*" and (clauses := self._clauses(inner)):
            return " ".join(f"[{_bare(self._text(clause))}]" for clause in clauses)
        text = self._text(inner)
        match operator:
            case "?":
                return f"[{_bare(text)}]"
            case "*":
                return f"[{_bare(text)}]…"
            case "+":
                return f"{text}…"
            case _:
                return text

    def _clauses(self, node: Any) -> list[Any]:
        """The alternatives of a rule that is only a choice; in `x*`, each is an optional clause."""
        named = _tokens(node)
        if len(named) == 1 and named[0] in self._inlined and named[0] not in PLACEHOLDERS:
            return _alternatives(self._rules[named[0]])
        return []

    def _named(self, name: str) -> str:
        if name in PLACEHOLDERS:
            return PLACEHOLDERS[name]
        if name in self._statements:
            return "statement"
        if name in self._tokens:
            return self._tokens[name]
        return self._text(self._rules[name])


def _alternatives(body: Any) -> list[Any]:
    return list(body.children) if body.data == "expansions" else [body]


def _tokens(node: Any) -> list[str]:
    return [str(token) for token in node.scan_values(lambda each: isinstance(each, Token))]


def _literal(body: Any) -> str | None:
    found = _tokens(body)
    return _unquoted(found[0]) if len(found) == 1 and found[0].startswith('"') else None


def _unquoted(text: str) -> str:
    return text[1 : text.rindex('"')]


def _bare(text: str) -> str:
    """The text without the braces of an outermost choice, which brackets replace."""
    if not text.startswith("{") or not text.endswith("}"):
        return text
    depths = accumulate((c == "{") - (c == "}") for c in text[:-1])
    return text[1:-1] if all(depths) else text


def _mandatory(text: str) -> str:
    """The text without its optional beginning."""
    if not text.startswith("["):
        return text
    depths = list(accumulate((c == "[") - (c == "]") for c in text))
    return text[depths.index(0) + 1 :].lstrip()


def _tidy(text: str) -> str:
    text = re.sub(r"\( ", "(", text)
    text = re.sub(r" ([),;])", r"\1", text)
    return re.sub(r" ?\. ?", ".", text)
