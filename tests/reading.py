# SPDX-License-Identifier: Apache-2.0
"""Flesch-Kincaid grade of English texts: the school year whose pupils read them without help.

Own code, because textstat brings nltk and needs a corpus from the network. Syllables are groups of
vowels with the usual corrections; `_SYLLABLES` holds the words of our texts that these get wrong,
found by comparison with the CMU Pronouncing Dictionary.

Source: J. P. Kincaid et al., Derivation of New Readability Formulas, Naval Technical Training
Command, Research Branch Report 8-75 (1975).
"""

import re

_SYLLABLES = {
    "anybody": 4, "beforehand": 3, "being": 2, "bytes": 1, "earlier": 3, "easiest": 3, "everything": 3,
    "influence": 3, "likely": 2, "million": 2, "somebody": 3, "someone": 2, "something": 2, "tables": 2, "whoever": 3,
}  # fmt: skip
_WORD = re.compile(r"[^\W_]+(?:[’'-][^\W\d_]+)*")
_SENTENCE = re.compile(r"[.!?](?=[\s”)]|$)|\n")


def grade(text: str) -> float:
    """Return the Flesch-Kincaid grade of a text; a line break ends a sentence too."""
    sentences = [found for part in _SENTENCE.split(text) if (found := _WORD.findall(part))]
    words = [word for sentence in sentences for word in sentence]
    return (
        0.39 * len(words) / len(sentences) + 11.8 * sum(map(syllables, words)) / len(words) - 15.59
    )


def syllables(word: str) -> int:
    """Return the number of syllables of an English word; a number counts as one."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if word in _SYLLABLES:
        return _SYLLABLES[word]
    if "-" in word:
        return sum(map(syllables, word.split("-")))
    count = len(re.findall(r"[aeiouy]+", word))
    is_silent = re.search(r"[^aeiouyl]e$|[aeiouy]le$|[^aeiouytd]ed$|[aeiouy][^aeiouy]+es$", word)
    if is_silent and not re.search(r"(?:[sxz]|[cs]h|[cg])es$", word):
        count -= 1
    count += len(re.findall(r"i[aou]|eo|ua|uity", word))
    count -= len(re.findall(r"[ctgs]i[ao]|qua|gua|peo", word))
    return max(count, 1)
