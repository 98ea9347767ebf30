# SPDX-License-Identifier: Apache-2.0
"""Sentences about shares of which some of the people concerned deny the answer."""

from collections.abc import Iterator, Sequence

from frankly_analyst import Estimate
from frankly_analyst.drawing import label_of
from frankly_analyst.plots import SHARE
from frankly_analyst.shown import Shown

from frankly_server.web.results.words import Words

_POSSIBLE = (0.0, 1.0)


def denial_sentences(rows: Sequence[Estimate], words: Words) -> Iterator[str]:
    """Yield a sentence for each row that says how large its share can be if some deny.

    Nothing is said of rows without `denied_estimate`: of means and contrasts it would not be true.
    """
    for row in rows:
        if row.denied_estimate is None:
            continue
        is_corrected = row.corrected is not None
        value, low = (row.corrected, row.corrected_low) if is_corrected else (row.estimate, row.low)
        # Both with the interval of denial, so that they have the same digits.
        least, most = (
            Shown.of(one, low, row.denied_high, SHARE, _POSSIBLE).said_in(words)
            for one in (value, row.denied_estimate)
        )
        share = (
            words.say("about", share=least.text)
            if least.text == most.text
            else words.say("between", low=least.text, high=most.text)
        )
        ends = words.say("interval", ends=least.ends) if least.low_text else least.ends
        answer = words.quoted(label_of(row, words))
        name = "denied_corrected" if is_corrected else "denied"
        yield words.say(name, answer=answer, share=share, ends=ends)
