# SPDX-License-Identifier: Apache-2.0
"""A page of your own Flask app that shows a Frankly survey in the visitor's browser.

SURVEY_LINK='https://host/s/ID#sha256=…' SURVEY_KEYS=keys.json flask --app examples.flask_page.app run

The app serves its own copy of the SDK, the pinned link and its own copy of the keys document
(/v1/keys of the survey's server, saved during set-up). The survey's server is then trusted only to
accept reports, and this app never sees an answer: the browser randomises the answers and sends them
only to the survey's server.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

from flask import Flask, Response, render_template_string, send_from_directory

# In your app: the folder to which your build copies `src` of the package @frankly/sdk.
SDK = Path(__file__).resolve().parents[2] / "client_sdk" / "browser" / "src"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Members' corner</title>
<link rel="stylesheet" href="{{ url_for('static', filename='page.css') }}">
<script type="module" src="{{ url_for('static', filename='page.js') }}"></script>
</head>
<body>
<header><h1>Members' corner</h1></header>
<main>
<frankly-survey data-link="{{ link }}"></frankly-survey>
<p id="thanks" role="status"></p>
</main>
</body>
</html>
"""


def create_app(link: str | None = None, keys: bytes | None = None) -> Flask:
    """Return the app; link and keys come from SURVEY_LINK and the file SURVEY_KEYS unless given."""
    app = Flask(__name__)
    pinned = link or os.environ["SURVEY_LINK"]
    shipped = keys if keys is not None else Path(os.environ["SURVEY_KEYS"]).read_bytes()
    server = "{0.scheme}://{0.netloc}".format(urlsplit(pinned))
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' {server}; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types frankly"
    )

    @app.get("/")
    def page() -> str:
        return render_template_string(PAGE, link=pinned)

    @app.get("/frankly/<path:name>")
    def sdk(name: str) -> Response:
        return send_from_directory(SDK, name)

    @app.get("/frankly-keys.json")
    def known_keys() -> Response:
        return Response(shipped, content_type="application/json")

    @app.after_request
    def strict(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    return app
