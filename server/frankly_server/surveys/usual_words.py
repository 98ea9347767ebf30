# SPDX-License-Identifier: Apache-2.0
"""Labels of common choices in twelve languages."""

from typing import Final

_WORDS: Final = {
    #      no, yes, prefers not to say, does not apply
    "ar": ("لا", "نعم", "أفضّل عدم الإجابة", "لا ينطبق"),
    "da": ("Nej", "Ja", "Ønsker ikke at svare", "Ikke relevant"),
    "de": ("Nein", "Ja", "Keine Angabe", "Trifft nicht zu"),
    "en": ("No", "Yes", "Prefer not to say", "Does not apply"),
    "es": ("No", "Sí", "Prefiero no responder", "No procede"),
    "fr": ("Non", "Oui", "Je préfère ne pas répondre", "Sans objet"),
    "it": ("No", "Sì", "Preferisco non rispondere", "Non pertinente"),
    "nl": ("Nee", "Ja", "Zeg ik liever niet", "Niet van toepassing"),
    "pl": ("Nie", "Tak", "Wolę nie odpowiadać", "Nie dotyczy"),
    "pt": ("Não", "Sim", "Prefiro não responder", "Não se aplica"),
    "sv": ("Nej", "Ja", "Vill inte svara", "Ej tillämpligt"),
    "tr": ("Hayır", "Evet", "Belirtmek istemiyorum", "Geçerli değil"),
}
_PLACES: Final = {"no": 0, "yes": 1, "no_answer": 2, "not_applicable": 3}


def known_words(name: str, language: str) -> str | None:
    """Return the words for no, yes, no_answer or not_applicable; None for other languages."""
    words = _WORDS.get(language.partition("-")[0].lower())
    return None if words is None else words[_PLACES[name]]
