# SPDX-License-Identifier: Apache-2.0
"""A survey page on this device: it explains the report, asks, and passes the answers to the SDK.

SURVEY_LINK='https://host/s/ID#sha256=…' flask --app examples.flask_app.app run

It listens on this machine only. Answers go from the form to `Client.answer` and nowhere else: no session, no log.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache

from flask import Flask, render_template_string, request
from frankly_sdk import (
    AlreadyAnswered,
    Answer,
    Client,
    FranklyError,
    NetworkError,
    Question,
    UnknownChoice,
)

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{{ title }}</title>
<main><h1>{{ title }}</h1>
{% if said %}<p role="status">{{ said }}</p>{% endif %}
{% if questions %}<details open><summary>What leaves this device</summary><pre>{{ words }}</pre></details>
<form method="post">
{% for q in questions %}<fieldset><legend>{{ q.text[language] }}</legend>
{% for c in q.choices %}<label>
<input type="radio" name="{{ q.id }}" value="{{ c.id }}" required> {{ c.label[language] }}
</label>{% endfor %}</fieldset>{% endfor %}
<p>Once sent, your answer cannot be withdrawn.</p><button>Send</button></form>{% endif %}</main></html>"""
SAID = {
    "sent": "Thank you. The server has your randomised answer; this device has erased it.",
    "queued": "Thank you. The randomised answer will be sent later.",
    "refused": "The survey no longer accepts your answer. It has been erased.",
    "disabled": "This survey is switched off here.",
}


def create_app(open_client: Callable[[], Client] | None = None) -> Flask:
    """Return the app; `open_client` returns a client, by default for the environment's SURVEY_LINK.

    The survey is opened at the first request, so that the app also starts without a network.
    """
    app, opened = Flask(__name__), cache(open_client or _from_environment)

    @app.errorhandler(NetworkError)
    def offline(error: NetworkError) -> tuple[str, int]:
        return f"The survey cannot be opened yet: {error.detail}", 503

    @app.errorhandler(FranklyError)
    def refused(error: FranklyError) -> tuple[str, int]:
        return f"The survey cannot be opened: {error.detail}", 409

    @app.get("/")
    def ask() -> tuple[str, int]:
        return _asking(opened())

    @app.post("/")
    def take() -> tuple[str, int]:
        client = opened()
        document = client.survey.document
        strata = {question.id: request.form.get(question.id, "") for question in document.strata}
        try:
            asked = client.plan().questions
            answer = Answer({name: request.form.get(name, "") for name in asked})
            receipt = client.answer(answer, strata=strata, patience_s=2)
        except UnknownChoice:
            return _asking(client, "Please answer every question.", 400)
        except FranklyError as error:
            return _refused(client, error)
        return _page(client, SAID[receipt.status]), 200

    return app


def _asking(client: Client, said: str = "", status: int = 200) -> tuple[str, int]:
    try:
        # Drawn and stored once: reloading the page shows the same questions.
        asked = client.plan().questions
    except FranklyError as error:
        return _refused(client, error)
    document = client.survey.document
    questions = [*document.strata, *(document.questions[name] for name in asked)]
    return _page(client, said, questions), status


def _refused(client: Client, error: FranklyError) -> tuple[str, int]:
    if isinstance(error, AlreadyAnswered):
        return _page(client, f"This device has answered already. {SAID[error.receipt.status]}"), 409
    return _page(client, f"Nothing was sent: {error.detail}."), 409


def _page(client: Client, said: str, questions: Sequence[Question] = ()) -> str:
    document = client.survey.document
    explanation, language = client.survey.explain(), document.languages[0]
    return render_template_string(
        PAGE,
        title=client.survey.title,
        said=said,
        questions=questions,
        words=explanation,
        language=language,
    )


def _from_environment() -> Client:
    return Client.open(
        os.environ["SURVEY_LINK"],
        store=os.environ.get("SURVEY_STORE", "answers.db"),
        background=True,
        one_person=True,
    )
