# SPDX-License-Identifier: Apache-2.0
"""Texts of XLSForms: language tags of columns, and labels without markup, in every language."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from frankly_protocol.schema import LANGUAGE, unsafe_character

MAX_LANGUAGES: Final = 32
MAX_TEXT: Final = 5000
"""Characters of a label that are read; a survey file refuses texts of more than 4,000."""
_JOINERS: Final = "\u200c\u200d"
_NAMES: Final = {
    "am": "amharic አማርኛ",
    "ar": "arabic العربية عربي عربى arabe árabe",
    "bn": "bengali bangla বাংলা",
    "ckb": "kurdish sorani کوردی",
    "cs": "czech čeština",
    "da": "danish dansk",
    "de": "german deutsch",
    "el": "greek ελληνικά",
    "en": "english eng anglais inglés ingles inglês",
    "es": "spanish español espanol castellano esp spa espagnol",
    "fa": "persian farsi فارسی",
    "fi": "finnish suomi",
    "fr": "french français francais fra fre francés",
    "ha": "hausa",
    "hi": "hindi हिन्दी हिंदी",
    "ht": "creole kreyòl kreyol haitian",
    "id": "indonesian bahasa",
    "ig": "igbo",
    "it": "italian italiano",
    "ja": "japanese 日本語",
    "km": "khmer ខ្មែរ",
    "ko": "korean 한국어",
    "lo": "lao ລາວ",
    "mg": "malagasy",
    "my": "burmese myanmar မြန်မာ",
    "ne": "nepali नेपाली",
    "nl": "dutch nederlands",
    "no": "norwegian norsk",
    "om": "oromo oromiffa",
    "pl": "polish polski",
    "prs": "dari دری",
    "ps": "pashto پښتو",
    "pt": "portuguese português portugues por portugais",
    "ro": "romanian română",
    "ru": "russian русский",
    "rw": "kinyarwanda",
    "so": "somali soomaali",
    "sv": "swedish svenska",
    "sw": "swahili kiswahili swa",
    "ta": "tamil தமிழ்",
    "th": "thai ไทย",
    "ti": "tigrinya ትግርኛ",
    "tl": "tagalog filipino",
    "tr": "turkish türkçe turkce",
    "uk": "ukrainian українська",
    "ur": "urdu اردو",
    "vi": "vietnamese tiếng",
    "yo": "yoruba",
    "zh": "chinese 中文",
}
_TAGS: Final = {name: tag for tag, names in _NAMES.items() for name in names.split()}
_CODE: Final = re.compile(r"\(\s*([A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*)\s*\)")
_TAG: Final = (
    r"(?:a|abbr|article|b|big|blockquote|body|br|center|code|dd|del|details|div|dl|dt|em|fieldset"
    r"|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|mark|ol"
    r"|option|p|pre|q|s|script|section|select|small|source|span|strike|strong|style|sub|summary"
    r"|sup|svg|table|tbody|td|textarea|tfoot|th|thead|title|tr|tt|u|ul|var|video)"
)
_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s<>"']+))*\s*/?"""
_MARKUP: Final = (
    (re.compile(rf"(?i)<(?:br{_ATTRIBUTES}|/(?:br|p|div|li|h[1-6])\s*)>"), " "),
    (re.compile(rf"(?i)<(?:{_TAG}{_ATTRIBUTES}|/{_TAG}\s*)>"), ""),
    (re.compile(r"<!--[^<>]*-->"), ""),
    (re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)"), r"\1"),
    (re.compile(r"(?m)^\s{0,3}#{1,6}\s+"), ""),
    (re.compile(r"(\*\*|__)(?=\S)([^*_]*[^*_\s])\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*]*[^*\s])\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_(?=\S)([^_]*[^_\s])_(?![\w_])"), r"\1"),
    (re.compile(r"\\([*_#\\])"), r"\1"),
)
"""Markup of labels, with what replaces it: HTML, and the markdown of ODK.

Only tags that exist are markup: a label such as `<R500 or >R1000` stays as it is.
"""
VALUE: Final = re.compile(r"\$\{[^{}]*\}")
"""The value of another question, inside a label or a rule."""


@dataclass(slots=True)
class Languages:
    """The languages of a form and its label columns.

    tags : of the survey, the first language first. columns : those of a language, in the order in
    which they are read. missing : number of texts without a translation, by tag; counted while
    texts are read. notes : what the person who imports the form should know.
    """

    tags: list[str]
    columns: dict[str, list[str]]
    notes: list[str]
    missing: dict[str, int] = field(default_factory=dict)

    def text(self, labels: Mapping[str, str], otherwise: str = "") -> dict[str, str]:
        """Return a label without markup in every language; empty if it has no text at all.

        A language without a text gets that of the first language that has one, or `otherwise`.
        """
        found = {tag: self._in(tag, labels) for tag in self.tags}
        first = next(filter(None, found.values()), plain(otherwise))
        if not first:
            return {}
        for tag, text in found.items():
            if not text and any(found.values()):
                self.missing[tag] = self.missing.get(tag, 0) + 1
        return {tag: text or first for tag, text in found.items()}

    def _in(self, tag: str, labels: Mapping[str, str]) -> str:
        texts = (plain(labels.get(column, "")) for column in self.columns[tag])
        return next(filter(None, texts), "")

    def remarks(self) -> tuple[str, ...]:
        """Return the notes, with the numbers of texts that have no translation."""
        gaps = (
            f"{tag}: {n} texts have no translation and begin with those of another language"
            for tag, n in self.missing.items()
        )
        return (*self.notes, *gaps)


def plain(text: str) -> str:
    """Return a label without HTML, markdown, line breaks and characters that cannot be shown."""
    text = text[:MAX_TEXT]
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    text = " ".join(html.unescape(text).split())
    if unsafe_character(text) is None:
        return text
    # A joiner is safe only between other characters; everything else is safe or unsafe by itself.
    kept = "".join(char for char in text if char in _JOINERS or unsafe_character(char) is None)
    if unsafe_character(kept) is not None:
        kept = "".join(char for char in kept if char not in _JOINERS)
    return " ".join(kept.split())


def languages_of(columns: Sequence[str], default: str) -> Languages:
    """Return the languages of a form.

    columns : languages of its label columns, "" for the column without one. default : the setting
    default_language.
    """
    notes: list[str] = []
    tags: dict[str, list[str]] = {}
    for column in columns:
        if column:
            tags.setdefault(_tag(column, tags, notes), []).append(column)
    if "" in columns:
        tag = _tag(default, tags, notes) if default else "en" if not tags else ""
        if not default and not tags:
            notes.append("the form names no language: its texts count as English (en)")
        if tag:
            tags.setdefault(tag, []).append("")
    elif default and (tag := _known(default)) not in tags:
        notes.append(f"there are no labels in the default language {default}")
    first = _known(default)
    order = sorted(tags, key=lambda one: one != first)
    if len(order) > MAX_LANGUAGES:
        notes.append(f"only the first {MAX_LANGUAGES} languages are taken over")
    kept = order[:MAX_LANGUAGES]
    # The column without a language fills the gaps of the first one.
    for tag in kept[:1]:
        tags[tag].extend([""] * ("" not in tags[tag]))
    return Languages(kept, {tag: tags[tag] for tag in kept}, notes)


def _known(name: str) -> str:
    """Return the tag of a language's name or code, "" if neither is known."""
    code = _CODE.search(name)
    if code:
        tag = code[1].replace("_", "-")
        head, _, rest = tag.partition("-")
        return f"{head.lower()}-{rest}" if rest else _TAGS.get(head.lower(), head.lower())
    words = re.findall(r"[^\W\d_]+", name.lower()) or [""]
    named = next((_TAGS[word] for word in words if word in _TAGS), "")
    if not named and re.fullmatch(r"[a-z]{2}(-[A-Za-z0-9]{2,8})?", name.strip()):
        return name.strip()
    return named


def _tag(name: str, used: Iterable[str], notes: list[str]) -> str:
    """Return a language's tag; of an unknown language, one for private use that is not in `used`."""
    tag = _known(name)
    if tag and LANGUAGE.fullmatch(tag):
        return tag
    taken = set(used)
    tag = next(t for t in (f"qa{chr(97 + i)}" for i in range(26)) if t not in taken)
    notes.append(f"the language “{name}” is not known: write its tag in place of {tag}")
    return tag
