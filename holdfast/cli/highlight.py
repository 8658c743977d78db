"""Syntax highlighting in the shell."""

from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from holdfast.cli.split import TOKEN
from holdfast.sql.syntax.synopsis import keywords

STYLE = Style.from_dict(
    {
        "keyword": "ansicyan bold",
        "string": "ansigreen",
        "name": "ansiyellow",
        "comment": "ansibrightblack",
        "number": "ansimagenta",
        "prompt": "bold",
    }
)


class SqlHighlighter(Lexer):
    """Highlights keywords, strings, quoted names, numbers and comments."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines: list[StyleAndTextTuples] = [[]]
        for token in TOKEN.finditer(document.text):
            first, *more = token.group().split("\n")
            style = style_of(token.lastgroup or "", token.group())
            lines[-1].append((style, first))
            lines.extend([(style, line)] for line in more)
        return lambda number: lines[number] if number < len(lines) else []


def style_of(kind: str, text: str) -> str:
    match kind:
        case "comment":
            return "class:comment"
        case "quoted":
            return "class:string" if text.startswith("'") else "class:name"
        case "word" if text.upper() in keywords():
            return "class:keyword"
        case "word" if text[0].isdigit():
            return "class:number"
        case _:
            return ""
