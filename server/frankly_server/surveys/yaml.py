# SPDX-License-Identifier: Apache-2.0
"""Strict parser and writer for survey files in YAML: only texts, lists and maps.

The value `no` is a text, tags are refused, and errors do not quote the file.
"""

import re
from typing import Any, Final

import yaml
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from yaml.composer import Composer

MAX_BYTES: Final = 2**20
_MAX_DEPTH: Final = 16


_QUOTE: Final = "put it in quotes if it is text"
_ANCHOR: Final = (
    "“&” and “*” begin anchors and aliases, which are not used here; "
    f"{_QUOTE}, or write the value out"
)
_TAG: Final = f"“!” begins a tag, which is not used here; {_QUOTE}, or write the plain value"
_ESCAPE: Final = "“\\” and a sign that is none of YAML's, within \"…\"; write \\\\, or use '…'"
WAYS_OUT: Final = {
    "mapping values are not allowed": "“: ” where no field can begin: a text with a colon and a space needs quotes,"
    " fields of a map are indented alike, and the field above needs a space after its colon",
    "could not find expected ':'": "a field needs “: ”, a colon and a space; text that goes on is"
    " indented further",
    "did not find expected key": "text after a closing quote, or fields of a map that are not indented alike;"
    " write ' twice within '…', or correct the indentation",
    "did not find expected '-' indicator": "entries of a list that are not indented alike, or one without “- ”",
    "block sequence entries are not allowed": f"“-” begins an entry of a list; {_QUOTE}, or begin a new line",
    "mapping keys are not allowed": f"“?” begins a key; {_QUOTE}",
    "found unexpected end of stream": "a quote that is not closed",
    "found invalid Unicode character escape": "“\\u” with no character of that number; write the character",
    "found unknown escape": _ESCAPE,
    "did not find expected hexdecimal number": _ESCAPE,
    "found a tab character": "a tab; indent with spaces",
    "did not find expected alphabetic or numeric character": _ANCHOR,
    "found undefined tag handle": _TAG,
    "but found another document": "a second document, after “---”; a survey file has one",
    "did not find expected <document start>": "text after “...”, where the document ends",
}
"""Message of the parser (its beginning) -> cause and way out."""
_LATE: Final = ("did not find expected ','", "found unexpected end", "could not find expected")
"""Problems that the parser notices further down than they begin."""
_WITHIN: Final = "within it, a text with “: ”, “ #” or a quote needs quotes"
_NO_START: Final = ("found character that cannot start", "did not find expected node content")
_SIGNS: Final = frozenset(",[]{}#|>%@`?:-")
"""Signs of YAML that a message may name; of other texts it names none."""
_DIRECTIVE: Final = re.compile("^%(?!YAML )", re.MULTILINE)


class _UnsupportedYaml(Exception):
    """A YAML construct that is not allowed in survey files."""

    def __init__(self, detail: str, line: int) -> None:
        super().__init__(detail)
        self.line = line


class _Loader(Composer, yaml.CBaseLoader):
    """YAML loader for texts that refuses aliases, tags, duplicate keys and deep nesting.

    LibYAML's parser accepts texts such as ``{en: Do you gamble?}``, which PyYAML's own refuses. Its
    composer could not be limited, so that is PyYAML's.
    """

    _depth = 0

    def __init__(self, text: str) -> None:
        yaml.CBaseLoader.__init__(self, text)
        Composer.__init__(self)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()
        line = event.start_mark.line + 1
        # Aliases of aliases expand exponentially ("billion laughs").
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _UnsupportedYaml(_ANCHOR, line)
        if getattr(event, "tag", None) is not None:
            raise _UnsupportedYaml(
                f"“!” begins a tag, which is not used here; {_QUOTE}, or write the plain value",
                line,
            )
        # The composer is recursive, so without a limit a small file could exhaust the stack.
        if self._depth >= _MAX_DEPTH:
            raise _UnsupportedYaml(f"nested deeper than {_MAX_DEPTH} levels", line)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise _UnsupportedYaml("a key must be plain text", line)
            # PyYAML would silently use the last of several equal keys.
            if key.value in keys:
                raise _UnsupportedYaml("the same key appears twice", line)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(data: bytes) -> Any:
    """Return the texts, lists and maps of a UTF-8 YAML document; a byte order mark is allowed.

    Raises InvalidInput (definition_invalid, text_characters), with the line number if known; the
    message does not quote the content.
    """
    if len(data) > MAX_BYTES:
        raise _invalid(f"a survey file has at most {MAX_BYTES} bytes")
    try:
        # LibYAML removes more marks without counting them in its positions.
        text = data.decode().lstrip("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _invalid(f"line {line}: the file is not UTF-8; save it as UTF-8") from None
    # The time to parse tag directives grows with the square of their number.
    if directive := _DIRECTIVE.search(text):
        line = text.count("\n", 0, directive.start()) + 1
        raise _invalid(f"line {line}: “%” begins a directive, which is not used here; {_QUOTE}")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a BaseLoader, which builds texts only
    except _UnsupportedYaml as error:
        raise _invalid(f"line {error.line}: {error}") from None
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        problem = Problem.TEXT_CHARACTERS
        raise InvalidInput(
            problem, f"line {line}: a character that cannot be shown safely; remove it"
        ) from None
    except yaml.MarkedYAMLError as error:
        raise _invalid(_explained(error, text)) from None


def _explained(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return line, cause and way out of a syntax error; the file is not quoted, but for YAML's own signs."""
    problem, mark = str(error.problem), error.problem_mark
    if mark is None:
        return "this is not valid YAML; check indentation and quotes"
    sign, line, began = text[mark.index : mark.index + 1], mark.line + 1, error.context_mark
    known = (words for start, words in WAYS_OUT.items() if problem.startswith(start))
    cause = next(known, "check indentation and quotes")
    if not sign and "expected node content" in problem:
        line, cause = len(text.rstrip().splitlines()), "the file ends within a “[” or “{”; close it"
    elif began and problem.startswith(_LATE):
        if problem.startswith("did not find expected ','"):
            cause = f"a “[” or “{{” that is not closed by line {line}; {_WITHIN}"
        line = began.line + 1
    elif problem.startswith(
        ("did not find expected key", "did not find expected '-'")
    ) and sign in ("]", "}"):
        cause = f"one “{sign}” too many"
    elif problem.startswith("found character that cannot start") and sign == "\t":
        cause = WAYS_OUT["found a tab character"]
    elif problem.startswith(_NO_START) and sign in _SIGNS:
        cause = f"a value cannot begin with “{sign}”; {_QUOTE}"
    return f"line {line}: this is not valid YAML: {cause}"


class _Dumper(yaml.SafeDumper):
    """YAML dumper that indents lists and never writes aliases, which survey files do not allow."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - yaml's signature
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's signature
        return True


def write_yaml(value: Any) -> bytes:
    """Return a YAML document for `read_yaml`; keys keep their order."""
    # With a width of 110, most texts fit on one line.
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110).encode()


def _invalid(detail: str) -> InvalidInput:
    return InvalidInput(Problem.DEFINITION_INVALID, detail)
