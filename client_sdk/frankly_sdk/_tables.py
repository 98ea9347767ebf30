# SPDX-License-Identifier: Apache-2.0
"""Tables of the store, and the migrations from earlier versions.

chain : name of the chain of keys that a row belongs to (`Proven.first_root`). Rows from
versions up to 3 have no chain and get the empty name. They apply to every chain to which they may
belong:

- an answer applies to every chain that has a survey of its id: no second value is ever drawn for
  it;
- a document applies if enough of the publisher's current keys signed it, a log's head if the log's
  current key did;
- proofs are verified again when they are used; evidence is kept unchanged.

Keys stored by these versions are dropped: their format, `frankly.keys/1`, is no longer supported.
"""

from typing import Final

VERSION: Final = 6
UNKNOWN_CHAIN: Final = ""

# alias : another name of a chain (see `Opening._alias`). keys.envelope : the newest keys of the
# chain. respondent : '' for the owner of the install, otherwise a keyed hash (see
# `Store.respondent_name`). cost : a ratio of odds; NULL is infinite. closes : when the survey closes
# by its document; NULL for answers of versions up to 4. plans : what a respondent is asked who has
# not answered yet; form is the digest of what a plan depends on (`Planning.form`), and a survey may
# have a plan for each of its forms, so that no version of it draws again.
_PLANS: Final = """
CREATE TABLE plans (
    respondent TEXT NOT NULL, survey TEXT NOT NULL, chain TEXT NOT NULL, form TEXT NOT NULL, plan TEXT NOT NULL,
    PRIMARY KEY (respondent, survey, chain, form)
)
"""
_TABLES: Final = """
CREATE TABLE aliases (alias TEXT PRIMARY KEY, chain TEXT NOT NULL);
CREATE TABLE keys (chain TEXT PRIMARY KEY, envelope BLOB NOT NULL);
CREATE TABLE surveys (
    chain TEXT NOT NULL, survey TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL, envelope BLOB NOT NULL,
    PRIMARY KEY (chain, survey)
);
CREATE TABLE evidence (
    chain TEXT NOT NULL, digest TEXT NOT NULL, envelope BLOB NOT NULL, PRIMARY KEY (chain, digest)
);
CREATE TABLE checkpoints (
    chain TEXT NOT NULL, origin TEXT NOT NULL, size INTEGER NOT NULL, note BLOB NOT NULL, PRIMARY KEY (chain, origin)
);
CREATE TABLE proofs (chain TEXT NOT NULL, digest TEXT NOT NULL, proof BLOB NOT NULL, PRIMARY KEY (chain, digest));
CREATE TABLE answers (
    chain TEXT NOT NULL, survey TEXT NOT NULL, respondent TEXT NOT NULL, digest TEXT NOT NULL,
    collect_url TEXT NOT NULL, report_id TEXT NOT NULL, body BLOB,
    state TEXT NOT NULL CHECK (state IN ('sealed', 'sent', 'refused')), code TEXT NOT NULL,
    cost TEXT, delta TEXT NOT NULL, closes TEXT, PRIMARY KEY (respondent, survey, chain)
);
CREATE INDEX outbox ON answers (survey, report_id) WHERE state = 'sealed';
CREATE TABLE IF NOT EXISTS salt (salt BLOB NOT NULL)
"""
_SET_ASIDE: Final = """
DROP TABLE keys;
DROP INDEX IF EXISTS outbox;
ALTER TABLE surveys RENAME TO old_surveys;
ALTER TABLE evidence RENAME TO old_evidence;
ALTER TABLE answers RENAME TO old_answers
"""
_SET_LOG_ASIDE: Final = """
ALTER TABLE checkpoints RENAME TO old_checkpoints;
ALTER TABLE proofs RENAME TO old_proofs
"""
_COPY: Final = """
INSERT INTO surveys SELECT '', survey, version, digest, envelope FROM old_surveys;
INSERT INTO evidence SELECT '', digest, envelope FROM old_evidence;
INSERT INTO answers SELECT '', survey, {respondent}, digest, collect_url, report_id, body, state, code, {cost},
    {delta}, NULL FROM old_answers;
DROP TABLE old_surveys;
DROP TABLE old_evidence;
DROP TABLE old_answers
"""
_COPY_LOG: Final = """
INSERT INTO checkpoints SELECT '', origin, size, note FROM old_checkpoints;
INSERT INTO proofs SELECT '', digest, proof FROM old_proofs;
DROP TABLE old_checkpoints;
DROP TABLE old_proofs
"""
# Version 1 had a single respondent and no logs; version 2 had no δ: every answer was charged its
# ceiling.
_COPY_1: Final = _COPY.format(respondent="''", cost="ceiling", delta="'0/1'")
_COPY_2: Final = _COPY.format(respondent="respondent", cost="ceiling", delta="'0/1'")
_COPY_3: Final = _COPY.format(
    respondent="respondent",
    cost="CASE WHEN free_delta = '0/1' THEN ceiling ELSE free END",
    delta="free_delta",
)
_STEPS: Final = {
    0: (_TABLES, _PLANS),
    1: (_SET_ASIDE, _TABLES, _PLANS, _COPY_1),
    2: (_SET_ASIDE, _SET_LOG_ASIDE, _TABLES, _PLANS, _COPY_2, _COPY_LOG),
    3: (_SET_ASIDE, _SET_LOG_ASIDE, _TABLES, _PLANS, _COPY_3, _COPY_LOG),
    4: ("ALTER TABLE answers ADD COLUMN closes TEXT", _PLANS),
    5: (_PLANS,),
}


def is_known(version: int) -> bool:
    """Return True if this program can read stores of this version."""
    return version == VERSION or version in _STEPS


def steps_from(version: int) -> list[str]:
    """Return the statements that upgrade a store from `version` to VERSION; 0 is an empty file."""
    statements = ";".join(_STEPS[version]).split(";")
    return [*(text for text in statements if text.strip()), f"PRAGMA user_version = {VERSION}"]
