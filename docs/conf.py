# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of this site: python -m sphinx docs build/site.

Formulas become MathML at build time, so that a page needs neither a network nor a script for them.
"""

import re
from importlib.resources import files
from typing import Any, Final

import ziamath
from docutils import nodes
from frankly_protocol import __version__
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

project = "Frankly"
release = __version__
project_copyright = "the Frankly authors, Apache-2.0. This page loads nothing from other sites"
root_doc = "index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
exclude_patterns = ["_templates"]
default_role = "code"
smartquotes_action = "q"  # quotation marks only: two dashes begin an option
suppress_warnings = ["misc.highlighting_failure"]  # there is no lexer for CSV

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["_static", str(files(ziamath) / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/icon.svg"
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
html_copy_source = False

_WIDTHS: Final = {"prose": 60, "words": 16}
"""Class of a column -> its longest cell has more characters than this; widths are in site.css."""
_FIELD: Final = re.compile(r"(?P<names>\w+(?:, \w+)*) : (?P<text>.*)")
_FUNCTION: Final = re.compile(r"<mi>(ln|log|exp|cos)</mi>")
"""Names of functions, which the converter sets like variables, without a space."""
_MARKUP: Final = re.compile(r"(?P<code>`[^`]*`)|(?P<special>[*\\]|(?<!^)\||_(?!\w))")


def _class_columns(_app: Sphinx, doctree: nodes.document, _name: str) -> None:
    """Mark columns of text, which need room; tables scroll if they are wider than the page."""
    for group in doctree.findall(nodes.tgroup):
        rows = [row.children for row in group.findall(nodes.row)]
        for column in zip(*rows, strict=True):
            longest = max(len(cell.astext()) for cell in column)
            kind = next((kind for kind, least in _WIDTHS.items() if longest > least), None)
            for cell in column if kind else ():
                cell["classes"].append(kind)


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda found: found["code"] or f"\\{found['special']}", text)


def _escape_help(_app: Sphinx, _context: Any, lines: list[str]) -> None:
    lines[:] = map(_escaped, lines)


def _restructure(
    _app: Sphinx, _what: str, _name: str, _value: Any, _options: Any, lines: list[str]
) -> None:
    """Make a field list of a docstring's lines "name : meaning", and escape characters of markup.

    Literal blocks, which follow "::" at the left edge, stay as they are.
    """
    result: list[str] = []
    in_fields = in_literal = False
    for line in lines:
        in_literal = in_literal and (not line or line.startswith(" "))
        if in_literal:
            result.append(line)
            continue
        in_literal = not line.startswith(" ") and line.endswith("::")
        text = _escaped(line.strip())
        field = _FIELD.fullmatch(text)
        if field:
            result += [*([] if in_fields else [""]), f":{field['names']}: {field['text']}"]
            in_fields = True
        elif re.fullmatch("-{3,}", text):
            result[-1:] = [f"**{result[-1]}**", ""]
        else:
            in_fields = in_fields and bool(text)
            result.append(f"    {text}" if in_fields else text)
    lines[:] = result


def _make_parsable(*arguments: Any) -> tuple[str | None, str | None]:
    """Replace defaults without a literal, such as <factory>; they would hide links to types."""
    *_, signature, returned = arguments
    return signature and re.sub(r"<[^>]*>", "...", signature), returned


def _visit_formula(self: Any, node: nodes.Element) -> None:
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    formula = convert(node.astext(), display=display)
    if re.search(r"\\|>&<", formula):  # left over from what the converter does not know
        getLogger(__name__).warning("a formula cannot be typeset", location=node)
    self.body.append(_FUNCTION.sub(r'<mo lspace="0" rspace="0.17em">\1</mo>', formula))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the handlers of this site."""
    for kind in (nodes.math, nodes.math_block):
        app.add_node(kind, override=True, html=(_visit_formula, None))
    app.connect("doctree-resolved", _class_columns)
    app.connect("autodoc-process-docstring", _restructure)
    app.connect("autodoc-process-signature", _make_parsable)
    app.connect("sphinx-click-process-description", _escape_help)
