# SPDX-License-Identifier: Apache-2.0
"""A survey in the terminal: python -m examples.questionnaire LINK [--store answers.db] [--language en]."""

import argparse
import sys
from collections.abc import Callable, Sequence

from frankly_sdk import AlreadyAnswered, Client, FranklyError, Question

Ask = Callable[[str], str]


def interview(
    client: Client,
    language: str | None = None,
    ask: Ask = input,
    say: Callable[[str], None] = print,
) -> int:
    """Explain, ask every question, answer; return 0 if the answer was sent or is queued."""
    say(str(client.survey.explain(language)))
    if ask("\nGo on? [y/N] ").strip().lower() not in ("y", "yes"):
        say("Nothing was drawn, stored or sent.")
        return 1
    document = client.survey.document
    chosen = language if language in document.languages else document.languages[0]
    try:
        # Drawn and stored before the first question is shown; nothing else is needed or asked.
        plan = client.plan()
        strata = {question.id: _one(question, chosen, ask, say) for question in document.strata}
        answers = {
            name: _one(document.questions[name], chosen, ask, say) for name in plan.questions
        }
        receipt = client.answer(answers, strata=strata)
    except AlreadyAnswered as before:
        receipt = before.receipt
        say("You have answered this survey here before; the first answer stands.")
    say(f"{receipt.status}: {receipt.detail}")
    return 0 if receipt.status in ("sent", "queued") else 1


def _one(question: Question, language: str, ask: Ask, say: Callable[[str], None]) -> str:
    """Ask until a valid choice number is entered; return the choice's id."""
    say(f"\n{question.text[language]}")
    for number, choice in enumerate(question.choices, 1):
        say(f"  {number}  {choice.label[language]}")
    while True:
        typed = ask("> ").strip()
        if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(question.choices):
            return question.choices[int(typed) - 1].id
        say(f"Please type a number from 1 to {len(question.choices)}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the survey and ask its questions; print a refusal in one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("link")
    parser.add_argument("--store", default="answers.db")
    parser.add_argument("--language")
    chosen = parser.parse_args(arguments)
    try:
        with Client.open(chosen.link, chosen.store) as client:
            return interview(client, chosen.language)
    except FranklyError as error:
        print(f"Nothing was sent: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
