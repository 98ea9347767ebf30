# SPDX-License-Identifier: Apache-2.0
"""docs/map.md: the file of every command, URL and table, read from the code; rules and recipes.

``python -m tools.site.map`` writes the page; a test compares it.
"""

import ast
import inspect
import re
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
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

The files behind commands, URLs, tables and rules; for layers see [Architecture](architecture.md).
Written by `python -m tools.site.map` from the code: do not edit by hand.
"""

_TABLES_HEAD = """
## Tables

Files are named after the nouns in URLs and commands. Names of tables never change (ADR 0022), even
if a noun has changed since. The first file declares, reads and writes the table; the others read it.

| table | files | what the first file is about |
|---|---|---|
"""

_RULES_HEAD = """
## Rules

The file defines the object; other files only use it. Related limits are often in the same file.
"""

RULES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "Documents and promises": (
        ("the fields of a survey document", "frankly_protocol.documents:SurveyDocument"),
        ("how long a document may be valid", "frankly_protocol.documents:MAX_VALIDITY"),
        ("how far a device's clock may be off", "frankly_protocol.documents:CLOCK_SKEW"),
        (
            "the largest size of a document, and of whole numbers",
            "frankly_protocol.canonical:MAX_BYTES",
        ),
        ("the canonical form of JSON", "frankly_protocol.canonical:dumps"),
        ("which characters a text may contain", "frankly_protocol.schema:unsafe_character"),
        ("how many choices a question may have", "frankly_protocol.questions:Question"),
        ("the form of ids of questions and choices", "frankly_protocol.schema:identifier"),
        ("the largest sizes of a mechanism", "frankly_protocol.mechanisms.base:MAX_ANSWERS"),
        ("the kinds of mechanism in a document", "frankly_protocol.mechanisms.expansion:KINDS"),
        ("which fields a notion has", "frankly_protocol.promises:Promise"),
        ("the form of a privacy claim", "frankly_protocol.audit.claims:require_sound"),
        (
            "whether a mechanism keeps a privacy claim",
            "frankly_protocol.audit.notions:require_private",
        ),
        ("which privacy levels may be requested", "frankly_protocol.audit.bounds:parse_epsilon"),
        ("the level of a whole report", "frankly_protocol.audit.report:report_level"),
        ("how much work a device spends on a document", "frankly_protocol.audit.work:MAX_WORK"),
        ("how long signing keys are valid", "frankly_protocol.trust.keys:MAX_VALIDITY"),
        ("when new signing keys are accepted", "frankly_protocol.trust.chain:prove_chain"),
        (
            "how the log proves that it contains a document",
            "frankly_protocol.trust.merkle:require_inclusion",
        ),
        ("how many witnesses a log's head needs", "frankly_protocol.trust.proof:require_watched"),
        ("the fields and the largest size of a report", "frankly_protocol.report:Report"),
        ("which tokens are valid", "frankly_protocol.trust.tokens:check_token"),
        ("the HTTP status and the title of an error code", "frankly_protocol.problems:Problem"),
    ),
    "Devices": (
        (
            "how a device draws a symbol: tables; the other kinds are beside this file",
            "frankly_protocol.mechanisms.dense:DenseMechanism.sample",
        ),
        ("the order in which a device checks a document", "frankly_sdk._trusted:accept_survey"),
        ("the app's limits and the ledger's refusal", "frankly_sdk.policy:Policy.check"),
        ("the default cap of a respondent", "frankly_protocol.audit.report:DEVICE_CAP"),
        ("which addresses a device accepts", "frankly_sdk.link:require_secure"),
        ("which hosts may collect reports", "frankly_sdk.link:require_collect"),
        ("time-outs, and the largest size of a response", "frankly_sdk.transport:HttpTransport"),
        ("the random moment at which a report leaves", "frankly_sdk.delivery:Delivery.schedule"),
        ("the random send delay: its default upper limit", "frankly_sdk._core:SPREAD_S"),
        (
            "when a report is sent again, and when it is given up",
            "frankly_sdk.delivery:Delivery.deliver",
        ),
        ("how long a device waits after a failed attempt", "frankly_sdk._backoff:Backoffs"),
        ("which reply acknowledges or refuses a report", "frankly_sdk.delivery:_judge"),
        ("whether a device's budget allows a survey", "frankly_sdk.policy:Policy.check"),
        ("how an invite code becomes a token", "frankly_protocol.trust.invite_codes:token_of_code"),
        ("the explanation before answering", "frankly_protocol.explanation.explain:explain"),
        (
            "what the label says about each question",
            "frankly_protocol.explanation.label:consequences",
        ),
        ("when a result fits an answer", "frankly_protocol.mechanisms.fit:enumerated"),
        (
            "what the explanation says about privacy levels",
            "frankly_protocol.explanation.promised:whole_report",
        ),
        ("what a device stores", "frankly_sdk.store:Store"),
        ("what a browser stores", "client_sdk/browser/src/store.js:Store"),
        ("exit statuses of `frankly-sdk`", "frankly_sdk.cli:main"),
        (
            "languages that surveys are explained in",
            "shared/frankly_protocol/languages.py:EXPLAINED",
        ),
        (
            "the texts of explanations, and plural forms",
            "shared/frankly_protocol/explanation/catalogue.py:Texts",
        ),
        ("the language of the element's own texts", "client_sdk/browser/src/words.js:stringsFor"),
        ("texts of the browser's errors", "client_sdk/browser/src/texts.js:TEXTS"),
        ("colours and layout of the element", "client_sdk/browser/src/styles.js"),
        ("the element's attributes, events and pages", "client_sdk/browser/src/element.js"),
        ("the way back to a panel", "client_sdk/browser/src/panel.js:wayBack"),
    ),
    "Surveys, intake and release": (
        ("the ids that the wizard makes from a label", "frankly_server.surveys.editing:slug"),
        ("when two labels look alike", "frankly_server.surveys.lookalikes:lookalikes"),
        ("how a CSV table of counts is read", "frankly_server.surveys.csv_prior:read_counts"),
        ("the fields of a survey file", "frankly_server.surveys.definition:SurveyDefinition"),
        ("how a survey file is read", "frankly_server.surveys.yaml:read_yaml"),
        ("the survey templates, and their order", "frankly_server.surveys.survey_templates:ORDER"),
        (
            "how a form of the admin pages is read, and input that nothing uses is refused",
            "frankly_server.web.admin.forms:takes",
        ),
        (
            "which counts are too small to publish in a prior",
            "frankly_server.surveys.priors:small_cells",
        ),
        ("how a draft becomes a document", "frankly_server.surveys.drafting:draft_document"),
        (
            "how long the search for a survey's mechanism may take",
            "frankly_server.surveys.drafting:SEARCH_S",
        ),
        ("how many searches and estimates run at once", "frankly_server.surveys.searches:SEARCHES"),
        ("where searches run, and when they are killed", "frankly_server.surveys.searches:apart"),
        ("the warnings before a survey is published", "frankly_server.surveys.devices:warnings_of"),
        ("which states a survey can move to", "frankly_server.surveys.survey_state:MOVES"),
        ("when a survey accepts no reports", "frankly_server.surveys.obstacles:obstacles"),
        ("what a report must be to be accepted", "frankly_server.intake.admission:Admission"),
        (
            "which report with an id that is taken is a duplicate, and which is refused",
            "frankly_server.intake.intake:record",
        ),
        ("how invites are made", "frankly_server.intake.invites:Invites"),
        ("where a report's token is checked and spent", "frankly_server.intake.tokens:spend_all"),
        (
            "when reports are released, and when the stop rule closes a survey",
            "frankly_server.intake.releasing:Releasing",
        ),
        ("how pending reports become a batch", "frankly_server.store.releases:Releases"),
        ("which numbers the answers page shows", "frankly_server.surveys.live:live"),
        ("when a webhook is tried again", "frankly_server.surveys.webhooks:WAITS_S"),
        ("what a webhook sends, and how it is signed", "frankly_server.surveys.webhooks:Webhooks"),
        ("to which addresses a webhook may be sent", "frankly_server.surveys.outbound:allowed"),
        ("what erasing a survey deletes", "frankly_server.surveys.surveys:Surveys.erase"),
        (
            "how the bytes of deleted reports are removed",
            "frankly_server.store.database:Database.forget_deleted",
        ),
        (
            "the notions that the wizard offers, and its defaults",
            "frankly_server.surveys.protection:Protection",
        ),
    ),
    "Estimates and plans": (
        ("the fields of a request for estimates", "frankly_analyst.request:EstimatesRequest"),
        ("which fields of a request exclude each other", "frankly_server.analysis.request:Request"),
        ("the columns of the CSV of estimates", "frankly_analyst.rows:Estimate"),
        ("the CSV file for people with a spreadsheet", "frankly_analyst.formats:to_spreadsheet"),
        ("which warnings (flags) an estimate has", "frankly_design.estimate.flags:row_flags"),
        ("the sentences of the estimates page", "server/frankly_server/web/results/sentences.py"),
        (
            "the minimum number of reports for an estimate; below it the status is `insufficient`, with HTTP 200",
            "frankly_server.analysis.result:estimates_json",
        ),
        ("the unbiased estimate from counts", "frankly_design.kinds.decoder:decoder"),
        ("which shares can be estimated", "frankly_design.estimate.identifiable:in_words"),
        ("the variance of an estimate", "frankly_design.estimate.figures:Figures"),
        ("the kinds of interval, and the default", "frankly_design.estimate.margins:METHODS"),
        ("the score interval", "frankly_design.estimate.intervals:score"),
        ("the guaranteed interval", "frankly_design.estimate.chernoff:kl"),
        ("the interval of a ratio", "frankly_design.estimate.ratios:ratio"),
        ("the projection onto the simplex", "frankly_design.kinds.projection:onto_simplex"),
        (
            "how much fake reports can change an estimate",
            "frankly_design.estimate.poisoning:poisoning",
        ),
        ("how versions are pooled", "frankly_server.analysis.pooling:pool"),
        ("effect sizes and their intervals", "frankly_design.estimate.effects:cohens_h"),
        (
            "whether people gave up at some questions of a form more often",
            "frankly_design.estimate.completion:completion",
        ),
        ("the correction for several tests (Holm)", "frankly_design.estimate.effects:holm"),
        (
            "which groups and tests a comparison has",
            "frankly_server.analysis.comparing:comparisons",
        ),
        (
            "how groups of known sizes make a population",
            "frankly_server.analysis.populations:populations",
        ),
        (
            "which strata are withheld from published counts",
            "frankly_server.analysis.counts:_part_json",
        ),
        ("how raked and post-stratified weights are found", "frankly_analyst.models.weights:rake"),
        (
            "the variance of weighted and post-stratified estimates",
            "frankly_analyst.models.scored:Scores",
        ),
        ("the day of a batch", "frankly_server.store.batches:day_of"),
        ("how days become weeks and months", "frankly_server.analysis.periods:Span"),
        ("how a request for a plan is answered", "frankly_design.requests.plan:plan_json"),
        ("the fields of a request for a plan", "frankly_design.requests.plan_request:PlanRequest"),
        (
            "the half-width of a margin, and the finite population",
            "frankly_design.estimate.figures:sampling_factors",
        ),
        ("the margin of a planned survey", "frankly_design.estimate.planner:Plan.margins"),
        (
            "the reports with which every planned result is shown",
            "frankly_design.estimate.sure_counts:sure_reports",
        ),
        ("how a plan of two arms is answered", "frankly_design.requests.split:split_json"),
        (
            "the power of the test that compares two arms",
            "frankly_design.estimate.split_test:SplitTest",
        ),
        (
            "the best division of respondents over waves",
            "frankly_design.estimate.wave_plan:best_division",
        ),
        ("the level of each wave in a plan", "frankly_design.requests.waves:waves_json"),
    ),
    "Design": (
        ("the fields of a design request", "frankly_design.requests.design_fields:DesignFields"),
        (
            "the limits of a search's time, gap and memory",
            "frankly_design.requests.design_fields:SearchLimits",
        ),
        ("the names of mechanisms", "frankly_design.engine.request:MECHANISMS"),
        ("the objectives of a design", "frankly_design.tables.objectives:OBJECTIVES"),
        ("the notions in Python", "frankly_design.interface.notions:Notion"),
        (
            "how arrays and pandas tables become exact numbers",
            "frankly_design.interface.tables:exact",
        ),
        (
            "which solver designs a mechanism, and when a design is certified",
            "frankly_design.engine.engine:design",
        ),
        ("the bound that no mechanism beats", "frankly_design.optimum.variance.proof:prove"),
        ("rounding to whole numbers", "frankly_design.tables.quantise:quantise"),
        (
            "when the warning about a poor mechanism is given",
            "frankly_design.engine.regret:LEAST_RATIO",
        ),
    ),
    "Forms": (
        (
            "the largest sizes of a form",
            "frankly_protocol.mechanisms.agreement.limits:MAX_QUESTIONS",
        ),
        ("which questions a device asks for a plan", "frankly_protocol.asking:Asking"),
        ("what a plan depends on, and how it is stored", "frankly_sdk._planning:Planning"),
        ("when a plan is drawn", "frankly_sdk._sealing:Sealing.plan"),
        (
            "how a device turns numbers, boxes and skipped questions into choices",
            "frankly_sdk.answer:Answer.settled",
        ),
        ("the fields of a request for a form", "frankly_design.requests.design_form:FormFields"),
        ("how a form is designed", "frankly_design.form.engine:design_form"),
        (
            "how often a form draws each group of questions",
            "frankly_design.form.allocation:allocate",
        ),
        (
            "which designs a form is compared with",
            "frankly_design.form.comparisons:separate_blocks",
        ),
        ("the margins of a planned form", "frankly_design.requests.plan_form:FormPlan"),
        ("how the parts of a form are counted", "frankly_design.kinds.parts:counted_blocks"),
        ("which questions have to be asked for a plan of a form", "frankly_protocol.asking:Asking"),
        (
            "the chance that a report shows a question of a form",
            "frankly_design.kinds.parts:chance_shown",
        ),
        (
            "which joint tables a form can estimate",
            "frankly_design.form.joint_tables:estimable_pairs",
        ),
    ),
    "Accounts and access": (
        (
            "the order of roles, and what each may do in a sentence",
            "frankly_server.accounts.roles:ROLES",
        ),
        ("how new key files are written in a rotation", "frankly_server.keys.rotation:Rotation"),
        (
            "which role an admin page needs (stated at each view in `server/frankly_server/web/admin/`)",
            "frankly_server.web.security:needs",
        ),
        ("which role may call an API route", "frankly_server.web.auth:require_role"),
        ("which surveys an API key opens", "frankly_server.keys.access:Principal.opens"),
        (
            "the length of passwords, and the cost of their hashes",
            "frankly_server.accounts.passwords:MIN_LENGTH",
        ),
        ("when an account is locked", "frankly_server.accounts.lockout:after_failure"),
        ("how long a sign-in lasts", "frankly_server.accounts.sessions:SESSION_S"),
        (
            "the second factor, and recovery codes",
            "frankly_server.accounts.second_factor:SecondFactors",
        ),
        ("who must have a second factor", "frankly_server.accounts.sessions:must_enrol"),
        (
            "the cookies, and the defence against forged forms",
            "frankly_server.web.security:CookieSession",
        ),
        ("the Content-Security-Policy of admin pages", "frankly_server.web.security:POLICY"),
        ("the Content-Security-Policy of the hosted page", "frankly_server.web.hosted:hosted_page"),
        ("the headers of all other responses", "frankly_server.web.headers:ALWAYS"),
        ("which routes other pages may call (CORS)", "frankly_server.web.hosted:open_to_pages"),
    ),
    "Operation": (
        ("the settings, their limits and defaults", "frankly_server.settings:Settings"),
        ("rate limits", "frankly_server.web.limits:RateLimits"),
        ("how many requests run at the same time", "frankly_server.web.slots:Slots"),
        ("what a log line may contain", "frankly_server.web.logs:FIELDS"),
        ("which metrics there are", "frankly_server.web.metrics:Metrics"),
        ("what `frankly doctor` checks", "frankly_server.cli.doctor:examine"),
        ("exit statuses of `frankly`", "frankly_server.cli.exits:exit_code"),
        ("what a command says if the disk is full", "frankly_server.cli.front:_WAYS_OUT"),
        ("when keys are reported to expire soon", "frankly_server.keys.status:SOON_DAYS"),
        (
            "which settings of a database are durable enough",
            "frankly_server.store.engines:check_durability",
        ),
        ("the version of the database's schema", "frankly_server.store.schema:SCHEMA_VERSION"),
        ("what a backup contains", "frankly_server.store.backup:save"),
        ("which keys may sign a backup", "frankly_server.keys.backup_signature:signers_of"),
        (
            "in which order migrations run (`down_revision` of each script)",
            "migrations/versions/0107_initial.py",
        ),
        ("what an auditor of the log checks", "frankly_server.log.audit:audit"),
        (
            "which database a key folder belongs to",
            "frankly_server.log.noted_head:NotedHead.require_in",
        ),
    ),
}
"""Rules that readers look for, by group, each with the place that defines it.

A place is ``module:object``, or for other files ``path`` or ``path:object``. The file must define
the object, not import it; otherwise the page is not written.
"""

_RECIPES = """
## How to add

**A mechanism (family).** A module in `design/frankly_design/families/` with its parameters and its integer
table, named in `FAMILIES` of `design/frankly_design/families/__init__.py`; an example in
`docs/examples/design/`, which the tests run. The verifier needs no change: it judges tables.

**A kind of mechanism** (beside table, unary, subset, product and form). In Python, a class in
`shared/frankly_protocol/mechanisms/`, named in `shared/frankly_protocol/mechanisms/expansion.py`; its verifier in
`shared/frankly_protocol/audit/kinds.py`; and a class in `design/frankly_design/kinds/`, named in
`design/frankly_design/kinds/registry.py`: with these, documents, devices, explanations, counts, estimates and plans
know it. In the browser, a reader in `client_sdk/browser/src/kinds.js`, its name in `client_sdk/browser/src/parts.js`,
and, unless its symbols can be listed, an entry in `client_sdk/browser/src/explained_kinds.js`. Then `docs/spec/`, a
case in `tests/vectors/from_numbers.py`, and `verifier/mechanism.go`.

**A type of question.** An entry in `TYPES` of `server/frankly_server/surveys/question_types.py`: survey files, their
schema and the question's page follow. One whose boxes or numbers another type has already is stored as that type
(`stored_as`). Then `frankly survey schema > docs/survey_file.schema.json`. What a document may ask is in
`shared/frankly_protocol/questions.py`.

**A metric.** A counter of `Metrics` in `server/frankly_server/web/metrics.py`, with a line of its text; labels are
fixed names only.

**A check of `frankly doctor`.** A function in `server/frankly_server/cli/doctor.py` that returns what it found, named
in `examine` there; what to do about it in `docs/troubleshooting.md`.

**A privacy notion.** A class in `shared/frankly_protocol/audit/declared/` with its fields, faults, exact ratios,
units of work and sentences, named in `shared/frankly_protocol/audit/declared/__init__.py`; a record of `NOTIONS` in
`client_sdk/browser/src/rare.js`; and a declaration in `design/frankly_design/notions/declared/` with its levels,
claims, cone and sentence, named in `design/frankly_design/notions/declared/registry.py`, with a class for Python in
`design/frankly_design/interface/notions.py`. A field that no claim has yet is read in
`shared/frankly_protocol/promises.py`; a notion that forms or large products can promise is named in
`client_sdk/browser/src/agreement.js` and `client_sdk/browser/src/kinds.js`, too. Then `docs/spec/`, vectors,
`verifier/claim.go` and `verifier/verify.go`, and a word in `server/frankly_server/web/admin/words.py`. A sentence
that no notion has yet needs texts in `shared/frankly_protocol/explanation/texts/`.

**A route.** A view in `server/frankly_server/web/`, with `@declare`, which describes it for OpenAPI; its error codes in
`shared/frankly_protocol/problems.py` and `docs/errors.md`; then `python -m tools.site.reference` and this page.

**A field of the estimates request.** A field of `EstimatesRequest` in `analyst/frankly_analyst/request.py`: the query,
the options of `frankly estimates`, the client's arguments, the links and snippets of the estimates page, the JSON of a
result and OpenAPI follow. Fields that exclude each other are in `server/frankly_server/analysis/request.py`; the
computation is in `server/frankly_server/analysis/`. A switch on the page is a line of its template.

**A column of the estimates.** A field of `Estimate` in `analyst/frankly_analyst/rows.py`: CSV, Parquet, the rows of the
client and OpenAPI follow. Its value is written in `server/frankly_server/analysis/rows.py`.

**A command.** A module in `server/frankly_server/cli/`, named in `server/frankly_server/cli/front.py`. The
page of commands follows.

**A page of the documentation.** A Markdown file in `docs/`, named in a list of `docs/index.md` by what it is for; each
fenced block gets its test in `tests/docs/registry.py`. `python -m sphinx docs build/site` builds the site.

**A setting.** A field of `Settings` in `server/frankly_server/settings.py`; then `python -m tools.site.reference`.

**A table.** Its declaration in `server/frankly_server/store/`, a migration in `migrations/versions/` under which the
previous release still works, and its class beside it. Its name never changes (ADR 0022). Backups contain every declared
table.

**A language.** Texts of surveys are the admin's. Those of explanations and of the element are in
`shared/frankly_protocol/explanation/texts/`, one file per language. Add a file with all the keys of
`shared/frankly_protocol/explanation/texts/en.json`, the language to `shared/frankly_protocol/languages.py` and to
`MORE` in `client_sdk/browser/src/words.js`, its plural rule to `shared/frankly_protocol/explanation/catalogue.py`, and
run `python -m tools.languages`. A page can add languages of its own by the element's `strings` and `texts`. Results
pages behind a link have theirs in `server/frankly_server/web/results/texts/`, with the keys of the English file, of
`analyst/frankly_analyst/words.py` and of the flags in `server/frankly_server/web/results/words.py`, which also has the
languages' own names. The admins' pages are English.

**A template of surveys.** A file in `server/frankly_server/surveys/templates/` that begins with three comments: the
question of whoever needs it; a sentence on who uses it and what comes out, without technical terms; a line for experts.
Then its place in `ORDER` of `server/frankly_server/surveys/survey_templates.py`, made-up shares in
`tools/template_pictures.py`, and `python -m tools.template_pictures`, which draws its picture.

**An SDK in another programming language.** `docs/protocol.md` specifies it; `docs/conformance.md` shows how to run the
suite against it.
"""


def page() -> str:
    """Return the whole page."""
    sections = [_HEAD, "\n## Commands\n\n| command | file |\n|---|---|\n", *_commands()]
    sections += ["\n## URLs\n\n| URL | file |\n|---|---|\n", *_routes()]
    sections += [_TABLES_HEAD, *_tables()]
    sections += [_RULES_HEAD, *_rules()]
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
    for group, rules in RULES.items():
        yield f"\n### {group}\n\n| what is decided | object | file |\n|---|---|---|\n"
        for rule, place in rules:
            file, name = place_of(place)
            if not is_defined(file, name):
                raise ValueError(f"{rule}: {name} is not defined in {file}")
            yield f"| {rule} | {f'`{name}`' if name else ''} | {_link(file)} |\n"


def place_of(place: str) -> tuple[str, str]:
    """Return the file of a place in `RULES`, relative to the repository, and its object if any."""
    target, _, name = place.partition(":")
    if "/" in target:
        return target, name
    return _file(str(import_module(target).__file__)), name


def is_defined(file: str, name: str) -> bool:
    """Return True if the file exists and defines the object itself; `name` may be `Class.method`."""
    if not (ROOT / file).is_file():
        return False
    text = (ROOT / file).read_text(encoding="utf-8")
    if not file.endswith(".py"):
        return not name or bool(re.search(rf"\b(?:const|let|class|function\*?) {name}\b", text))
    body = ast.parse(text).body
    for part in filter(None, name.split(".")):
        # Imports bind names too, so only definitions and assignments are accepted.
        found = [node for node in body if part in _names(node)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def _names(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines or assigns; none for an import."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    }


def _file_of(function: object) -> str:
    return _file(inspect.getsourcefile(inspect.unwrap(function)) or "")  # type: ignore[arg-type]


def _file(path: str) -> str:
    return str(Path(path).resolve().relative_to(ROOT))


def _link(file: str) -> str:
    return f"`{file}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
