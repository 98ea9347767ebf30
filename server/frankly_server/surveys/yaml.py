# SPDX-License-Identifier: Apache-2.0
"""Strict parser and writer for survey files in YAML: only texts, lists and maps.

The value `no` is a text, tags are refused, and errors do not quote the file.
"""

from typing import Any, Final

import yaml
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from yaml.composer import Composer

MAX_BYTES: Final = 2**20
_MAX_DEPTH: Final = 16


_QUOTE: Final = "put it in quotes if it is text"
WAYS_OUT: Final = {
    "mapping values are not allowed": "a colon and a space (“: ”) within a text, or fields of a map that are"
    " not indented alike; put the text in quotes, or correct the indentation",
    "did not find expected key": "text after a closing quote, or fields of a map that are not indented alike;"
    " write ' twice within '…', or correct the indentation",
    "did not find expected '-' indicator": "entries of a list that are not indented alike, or one without “- ”",
    "did not find expected ','": "a “[” or “{” that is not closed, or a text within with “: ” or a quote;"
    " put the text in quotes, or close the bracket",
    "block sequence entries are not allowed": f"“-” begins an entry of a list; {_QUOTE}, or begin a new line",
    "mapping keys are not allowed": f"“?” begins a key; {_QUOTE}",
    "found unexpected end of stream": "a quote that is not closed",
    "found invalid Unicode character escape": "“\\u” with no character of that number; write the character",
    "found unknown escape character": "an unknown sign after \\ within \"…\"; write \\\\, or use '…'",
    "but found another document": "a second document, after “---”; a survey file has one",
}
"""Message of the parser (its beginning) -> cause and way out."""


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
            raise _UnsupportedYaml(
                f"“&” and “*” begin anchors and aliases, which are not used here; {_QUOTE}, or write the value out",
                line,
            )
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
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _invalid(f"line {line}: the file is not UTF-8; save it as UTF-8") from None
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
    if mark is not None and mark.index >= len(text):
        mark = error.context_mark  # where the quote or bracket opens that is never closed
    if mark is None:
        return "this is not valid YAML; check indentation and quotes"
    sign = text[mark.index : mark.index + 1]
    if problem.startswith("found character that cannot start") and sign == "\t":
        cause = "a tab; indent with spaces"
    elif problem.startswith(("found character that cannot start", "did not find expected node")):
        # Only signs of YAML lead here, so nothing of the text is quoted.
        cause = f"a value cannot begin with “{sign.strip()}”; {_QUOTE}"
    else:
        known = (words for start, words in WAYS_OUT.items() if problem.startswith(start))
        cause = next(known, "check indentation and quotes")
    return f"line {mark.line + 1}: this is not valid YAML: {cause}"


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
