# SPDX-License-Identifier: Apache-2.0
"""Language of the pages that a respondent sees before, or instead of, a survey's form."""

from collections.abc import Sequence

from flask import Response, request
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.languages import EXPLAINED, explained_in


def language_of(offered: Sequence[str] = EXPLAINED) -> str:
    """Return the language of this request's visitor, one of `offered`.

    It is chosen as the element chooses it: the first that the browser prefers and the survey offers, in the same
    variant if there are several, otherwise the survey's first.

    offered : languages of the survey, by default all with texts, of which English is the first.
    """
    wanted = [tag.lower() for tag, quality in request.accept_languages if quality > 0]
    alike = (
        tag
        for one in wanted
        for same in (str.lower, _base)
        for tag in offered
        if same(tag) == same(one)
    )
    found = next(alike, None)
    return found or ("en" if offered is EXPLAINED else offered[0])


def texts_of_page(offered: Sequence[str] = EXPLAINED) -> Texts:
    """Return the texts of pages in the visitor's language; English if there are no texts in it. offered : as above."""
    return Texts(explained_in(language_of(offered)) or "en", "page")


def vary(response: Response) -> Response:
    """Say that this page depends on the visitor's language."""
    response.vary.add("Accept-Language")
    return response


def _base(tag: str) -> str:
    return tag.split("-", maxsplit=1)[0].lower()
