# SPDX-License-Identifier: Apache-2.0
"""docs/map.md: command, URL and table → file, read off the code; and recipes for common additions.

``python -m tools.site.map`` writes the page; a test compares it.
"""

import ast
import inspect
import re
import tempfile
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Final

import click
from frankly_protocol.clock import SystemClock
from frankly_server.app import create_app
from frankly_server.cli.front import VERBS
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "map.md"
STORE: Final = ROOT / "server" / "frankly_server" / "store"
_TABLE: Final = re.compile(r'^(\w+) = Table\(\s*"(\w+)"', re.MULTILINE)

_HEAD = """# Map

Where is it decided? Commands, URLs and tables lead to files here; the layers are in [Architecture](architecture.md).
Written by `python -m tools.site.map` from the code: not to be edited by hand.
"""

_TABLES_HEAD = """
## Tables

The file is that of the noun in URLs and commands; the name of a table stays for good (ADR 0022), even where the noun is
another today. The first file declares the table, reads and writes it; the others read it too.

| table | files | what the first file is about |
|---|---|---|
"""

RULES: Final = (
    ("how long a document may be valid", "frankly_protocol.documents:MAX_VALIDITY"),
    ("what a notion demands of a mechanism", "frankly_protocol.audit.notions:require_private"),
    ("the level of a whole report", "frankly_protocol.audit.report:report_level"),
    ("how much work a device spends on a document", "frankly_protocol.audit.work:MAX_WORK"),
    ("the HTTP status of an error code", "frankly_protocol.problems:Problem"),
    ("how many witnesses a log's head needs", "frankly_protocol.trust.proof:require_watched"),
    ("the app's limits and the ledger's refusal", "frankly_sdk.policy:Policy.check"),
    ("the random moment at which a report leaves", "frankly_sdk.delivery:Delivery.schedule"),
    ("whether an address is accepted", "frankly_sdk.link:require_secure"),
    ("what a report must be to be taken", "frankly_server.intake.admission:Admission"),
    ("how invites are made", "frankly_server.intake.invites:Invites"),
    ("how a token is spent", "frankly_server.intake.tokens:spend_all"),
    ("when reports are released", "frankly_server.intake.releasing:Releasing"),
    ("how pending reports become a batch", "frankly_server.store.releases:Releases"),
    ("the minimum below which there is no number", "frankly_server.analysis.result:answer"),
    ("the variance of an estimate", "frankly_server.estimate.figures:Figures"),
    ("how versions are pooled", "frankly_server.analysis.pooling:pool"),
    ("the columns of the CSV of estimates", "frankly_analyst.rows:Estimate"),
    ("the score interval", "frankly_server.estimate.intervals:score"),
    ("the guaranteed interval", "frankly_server.estimate.chernoff:kl"),
    ("the projection onto the simplex", "frankly_server.estimate.projection:onto_simplex"),
    ("the length of passwords", "frankly_server.accounts.passwords:MIN_LENGTH"),
    ("when an account is locked", "frankly_server.accounts.service:after_failure"),
    ("which role opens an admin page", "frankly_server.web.security:needs"),
    ("which role may call an API route", "frankly_server.web.auth:require_role"),
    ("the Content-Security-Policy of admin pages", "frankly_server.web.security:POLICY"),
    ("the Content-Security-Policy of the hosted page", "frankly_server.web.hosted:hosted_page"),
    ("limits of rate", "frankly_server.web.limits:RateLimits"),
    ("what a design request may say", "frankly_server.requests.design_fields:DesignFields"),
    ("what a survey file may say", "frankly_server.surveys.definition:SurveyDefinition"),
    ("how a form is designed", "frankly_server.design.form.engine:design_form"),
    ("what a form is compared with", "frankly_server.design.form.comparisons:separate_blocks"),
    ("how a form's parts are counted", "frankly_server.forms:counted_blocks"),
    ("what a form tells", "frankly_server.told:told_pairs"),
    ("the margins of a planned form", "frankly_server.requests.plan_form:plan_form"),
    ("what a request may say of a form", "frankly_server.requests.form_fields:FormFields"),
    ("how a survey file is read", "frankly_server.surveys.yaml:read_yaml"),
    ("rounding to whole numbers", "frankly_server.design.tables.quantise:quantise"),
    ("which solver designs a mechanism", "frankly_server.design.api.engine:design"),
    ("the bound that no mechanism beats", "frankly_server.design.optimum.variance.proof:prove"),
    ("limits of a design's time and size", "frankly_server.requests.design:design_json"),
    ("the margin of a planned survey", "frankly_server.requests.plan:plan_json"),
    ("when a webhook is tried again", "frankly_server.surveys.webhooks:WebhookThread"),
)
"""Rules that people look for, each with the object that decides it; a missing one fails the page."""

_RECIPES = """
## How to add

**A mechanism (family).** A module in `server/frankly_server/design/families/` with its parameters and its integer
table, named in `FAMILIES` of `server/frankly_server/design/families/__init__.py`; an example in
`docs/examples/design/`, which the tests run. The verifier needs no change: it judges tables. A new *kind* of table
(beside table, unary, subset and product) is a class in `shared/frankly_protocol/mechanisms/`, its verifier in
`shared/frankly_protocol/audit/`, its twin in `client_sdk/browser/src/`, and a vector in `tests/vectors/`.

**A privacy notion.** Its name and levels in `shared/frankly_protocol/promises.py`, its exact check in
`shared/frankly_protocol/audit/`, the same in `client_sdk/browser/src/`, vectors, and its cone in
`server/frankly_server/design/notions/cones.py`. Its explanation is part of `explain()` on both sides.

**A route.** A view in `server/frankly_server/web/`, with `@declare`, which describes it for OpenAPI; its problems in
`shared/frankly_protocol/problems.py` and `docs/errors.md`; then `python -m tools.site.reference` and this page.

**A field of the estimates request.** A field of `EstimatesRequest` in `analyst/frankly_analyst/request.py`: the query,
the options of `frankly estimates`, the client's arguments, the links and snippets of the estimates page, the JSON of a
result and OpenAPI follow. What it may not be combined with is a rule in `server/frankly_server/analysis/request.py`;
what it does is in `server/frankly_server/analysis/`. A switch on the page is a line of its template.

**A column of the estimates.** A field of `Estimate` in `analyst/frankly_analyst/rows.py`: CSV, Parquet, the rows of the
client and OpenAPI follow. Its value is written in `server/frankly_server/analysis/rows.py`.

**A command.** A module in `server/frankly_server/cli/`, named in `server/frankly_server/cli/front.py`.

**A setting.** A field of `Settings` in `server/frankly_server/settings.py`, and a row in `docs/operations.md`.

**A table.** Its declaration in `server/frankly_server/store/`, a migration in `migrations/versions/` that the release
before survives, and its class beside it. Its name never changes (ADR 0022). Backups carry every table that is declared.

**A language of the SDK.** `docs/protocol.md` is what it must do, `docs/conformance.md` how the suite is run against it.
Texts of surveys are the admin's; texts of the browser element are its `strings`.
"""


def page() -> str:
    """Return the whole page."""
    sections = [_HEAD, "\n## Commands\n\n| command | file |\n|---|---|\n", *_commands()]
    sections += ["\n## URLs\n\n| URL | file |\n|---|---|\n", *_routes()]
    sections += [_TABLES_HEAD, *_tables()]
    sections += ["\n## Rules\n\n| what is decided | object | file |\n|---|---|---|\n", *_rules()]
    return "".join(sections) + _RECIPES


def _commands() -> Iterator[str]:
    for verb, (target, _) in VERBS.items():
        module, _, name = target.partition(":")
        command: click.Command = getattr(import_module(module), name)
        if not isinstance(command, click.Group):
            yield f"| `frankly {verb}` | {_link(_file_of(command.callback))} |\n"
            continue
        for sub, subcommand in sorted(command.commands.items()):
            inner = (
                subcommand.commands.values()
                if isinstance(subcommand, click.Group)
                else [subcommand]
            )
            files = sorted({_file_of(leaf.callback) for leaf in inner})
            yield f"| `frankly {verb} {sub}` | {', '.join(map(_link, files))} |\n"


def _routes() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        database = Database(settings.store_url())
        upgrade(database)
        database.close()
        Keyring(settings.keys_folder, SystemClock()).init()
        app = create_app(settings)
        rows = set()
        for rule in app.url_map.iter_rules():
            methods = ", ".join(sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}))
            rows.add((rule.rule, methods, _file_of(app.view_functions[rule.endpoint])))
    for url, methods, file in sorted(rows):
        yield f"| `{methods} {url}` | {_link(file)} |\n"


def _tables() -> Iterator[str]:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(STORE.glob("*.py"))}
    rows = []
    for declared, text in sources.items():
        about = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].replace("\n", " ")
        for variable, table in _TABLE.findall(text):
            importing = re.compile(rf"store\.{declared.stem} import .*\b{variable}\b")
            users = [path for path, source in sources.items() if importing.search(source)]
            files = ", ".join(_link(str(path.relative_to(ROOT))) for path in (declared, *users))
            rows.append(f"| `{table}` | {files} | {about} |\n")
    yield from sorted(rows)


def _rules() -> Iterator[str]:
    for rule, place in RULES:
        module, _, name = place.partition(":")
        imported = import_module(module)
        attrgetter(name)(imported)
        file = str(Path(imported.__file__ or "").resolve().relative_to(ROOT))
        yield f"| {rule} | `{name}` | {_link(file)} |\n"


def _file_of(function: object) -> str:
    source = inspect.getsourcefile(inspect.unwrap(function))  # type: ignore[arg-type]
    return str(Path(source or "").resolve().relative_to(ROOT))


def _link(file: str) -> str:
    return f"`{file}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
