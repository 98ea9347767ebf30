// SPDX-License-Identifier: Apache-2.0
/** `frankly.survey/1`: read and checked field by field, in the order of the Python package (docs/protocol.md §3.2). */

import { prepare, requirePrivate, requireSound, statedCeiling, work, MAX_WORK } from "./audit.js";
import { bytesOf, loads } from "./canonical.js";
import { ClockError, DocumentRejected, UnsupportedDocument } from "./errors.js";
import { KINDS } from "./mechanisms.js";
import { compare, rational } from "./rational.js";
import * as schema from "./schema.js";

/**
 * @typedef {import("./audit.js").Claim} Claim
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {Record<string, string>} Words a text per language
 * @typedef {{id: string, text: Words, choices: {id: string, label: Words}[]}} Question
 * @typedef {{claim: Claim, secret: string | null, source: string | null, secrets: string[]}} Promised
 * @typedef {{id: string, questions: Question[], mechanism: import("./mechanisms.js").Mechanism, promises: Promised[],
 *   ceiling: Rational | null, restsOnPrior: boolean}} Block
 * @typedef {{survey: string, version: number, opens: number, closes: number, expires: number, languages: string[],
 *   title: Words, consent: Words | null, collectUrl: string, strata: Question[], blocks: Block[],
 *   token: {kind: string, key: string | null} | null, digest: string}} Survey
 */

export const CLOCK_SKEW = 600_000;
const DAY = 86_400_000;
const KEYS = "type survey version prev issued opens closes expires languages title consent collect_url min_reports strata token blocks".split(" ");
const BLOCK_KEYS = "id questions kind claims design_prior ceiling mechanism certificate".split(" ");

const counts = (/** @type {any} */ value, /** @type {string} */ field) => schema.items(value, field, 2, 256, schema.integer);
const level = (/** @type {any} */ value, /** @type {string} */ field) => schema.optional(value, field, schema.ratio);
const priorKeys = ["secret", "secrets", "joint", "source"];

/** The fields of each notion beside its name, in the order in which they are read. @type {Record<string, string[]>} */
const FIELDS = {
  ldp: ["level"],
  dp: ["level", "delta"],
  "secret-ldp": ["level", "prior"],
  lip: ["level", "prior"],
  alip: ["level", "low_level", "prior"],
  srlip: ["level", "prior", "attributes"],
  rldp: ["level", "lower_bounds", "diagonal", "secret", "source"],
  dpv: ["level", "prior", "sensitive"],
};

/** @type {Record<string, schema.Read<any>>} */
const READERS = {
  level,
  low_level: level,
  delta: (value, field) => schema.ratio(value, field, 0),
  prior,
  attributes: (value, field) => schema.items(value, field, 1, 8, (n, f) => schema.integer(n, f, 2, 256)),
  lower_bounds: (value, field) => schema.items(value, field, 2, 256, (row, f) => schema.items(row, f, 1, 128, (v, g) => schema.ratio(v, g, 0))),
  diagonal: schema.flag,
  secret: schema.identifier,
  source: schema.text,
  sensitive: schema.identifier,
};

/** One row means that the answer itself is the secret: a diagonal. */
function prior(/** @type {any} */ value, /** @type {string} */ field) {
  const data = schema.record(value, field, priorKeys);
  const secrets = schema.items(data.secrets, `${field}.secrets`, 2, 256, schema.identifier);
  schema.distinct(secrets, `${field}.secrets`);
  const joint = schema.items(data.joint, `${field}.joint`, 1, 256, counts);
  if ((joint.length !== 1 && joint.length !== secrets.length) || (joint.length === 1 && joint[0].length !== secrets.length))
    throw schema.reject(`expected ${secrets.length} rows, or one row if the answer is the secret`, `${field}.joint`);
  schema.identifier(data.secret, `${field}.secret`);
  schema.text(data.source, `${field}.source`);
  const table = joint.length > 1 ? joint : joint[0].map((n, s) => joint[0].map((_, x) => (s === x ? n : 0)));
  return { secret: data.secret, source: data.source, secrets, joint: table };
}

/** @returns {Promised} */
function promised(/** @type {any} */ value, /** @type {string} */ field) {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  const notion = isObject ? value.notion : undefined;
  const names = typeof notion === "string" && Object.hasOwn(FIELDS, notion) ? FIELDS[notion] : undefined;
  if (isObject && Object.hasOwn(value, "notion") && !names) throw new UnsupportedDocument("unknown notion: update the app", field);
  const data = schema.record(value, field, ["notion", ...(names ?? [])]);
  /** @type {Record<string, any>} */
  const read = {};
  for (const name of names ?? []) read[name] = READERS[name](data[name], `${field}.${name}`);
  if (read.level === null && (notion !== "alip" || read.low_level === null))
    throw schema.reject(notion === "alip" ? "two infinite levels promise nothing" : "only alip may leave a level open", `${field}.level`);
  const { prior: known, secret = null, source = null, ...rest } = read;
  if (rest.sensitive !== undefined) {
    rest.sensitive = known.secrets.indexOf(rest.sensitive);
    if (rest.sensitive < 0) throw schema.reject("this is not one of the prior's secrets", `${field}.sensitive`);
  }
  const claim = /** @type {Claim} */ ({ notion, ...rest, ...(known && { joint: known.joint }) });
  return { claim, secret: known?.secret ?? secret, source: known?.source ?? source, secrets: known?.secrets ?? [] };
}

const question = (/** @type {string[]} */ languages) => (/** @type {any} */ value, /** @type {string} */ field) => {
  const data = schema.record(value, field, ["id", "text", "choices"]);
  const choices = schema.items(data.choices, `${field}.choices`, 2, 64, (entry, where) => {
    schema.record(entry, where, ["id", "label"]);
    schema.identifier(entry.id, `${where}.id`);
    schema.words(entry.label, `${where}.label`, languages);
    return /** @type {{id: string, label: Words}} */ (entry);
  });
  schema.distinct(choices.map((choice) => choice.id), `${field}.choices`);
  schema.identifier(data.id, `${field}.id`);
  schema.words(data.text, `${field}.text`, languages);
  return /** @type {Question} */ (data);
};

const block = (/** @type {string[]} */ languages) => (/** @type {any} */ value, /** @type {string} */ field) => {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  const kind = isObject && typeof value.kind === "string" && Object.hasOwn(KINDS, value.kind) ? KINDS[/** @type {keyof typeof KINDS} */ (value.kind)] : undefined;
  if (isObject && Object.hasOwn(value, "kind") && !kind) throw new UnsupportedDocument("unknown kind of mechanism: update the app", field);
  const data = schema.record(value, field, [...BLOCK_KEYS, ...(kind?.params ?? [])]);
  schema.identifier(data.id, `${field}.id`);
  const questions = schema.items(data.questions, `${field}.questions`, 1, 16, question(languages));
  const mechanism = /** @type {NonNullable<typeof kind>} */ (kind).read(data, field);
  const promises = schema.items(data.claims, `${field}.claims`, 1, 16, promised);
  const design = counts(data.design_prior, `${field}.design_prior`);
  const ceiling = schema.optional(data.ceiling, `${field}.ceiling`, (v, f) => rational(...schema.ratio(v, f)));
  schema.identifier(data.mechanism, `${field}.mechanism`);
  schema.optional(data.certificate, `${field}.certificate`, certificate);
  const answers = questions.reduce((all, q) => all * q.choices.length, 1);
  if (answers > 256) throw schema.reject("a block's questions may have at most 256 joint answers", `${field}.${data.id}`);
  if (mechanism.answers !== answers) throw new DocumentRejected("weights", `${answers} joint answers need as many rows`, field);
  if (design.length !== answers || !design.every(Boolean)) throw schema.reject(`expected ${answers} positive counts`, `${field}.design_prior`);
  if (compare(ceiling, statedCeiling(mechanism)) !== 0)
    throw new DocumentRejected("privacy", "the stated ceiling is not that of the mechanism", `${field}.ceiling`);
  const restsOnPrior = promises.some((promise) => promise.secret !== null);
  return /** @type {Block} */ ({ id: data.id, questions, mechanism, promises, ceiling, restsOnPrior });
};

function certificate(/** @type {any} */ value, /** @type {string} */ field) {
  const data = schema.record(value, field, ["objective", "value", "bound"]);
  schema.identifier(data.objective, `${field}.objective`);
  schema.text(data.value, `${field}.value`, 64);
  schema.optional(data.bound, `${field}.bound`, (v, f) => schema.text(v, f, 64));
}

function tokenRule(/** @type {any} */ value, /** @type {string} */ field) {
  const { kind, key } = schema.record(value, field, ["kind", "key"]);
  if (kind !== "invite" && kind !== "rsa-pss") throw new UnsupportedDocument("unknown kind of token: update the app", `${field}.kind`);
  if (kind === "invite" ? key !== null : typeof key !== "string" || !/^[A-Za-z0-9_-]{64,2000}$/.test(key))
    throw schema.reject(kind === "invite" ? "invites have no key" : "expected a public key in base64url", `${field}.key`);
  return { kind, key };
}

/** Read exact payload bytes whose digest is known (steps 1, 4, 5). @returns {Survey} */
export function readSurvey(/** @type {Uint8Array} */ payload, /** @type {string} */ digest) {
  const data = loads(payload);
  if (data === null || typeof data !== "object" || Array.isArray(data) || data.type !== "frankly.survey/1")
    throw new UnsupportedDocument("expected a document of type frankly.survey/1: update the app", "type");
  schema.record(data, null, KEYS);
  const languages = schema.items(data.languages, "languages", 1, 32, schema.language);
  schema.distinct(languages, "languages");
  const [issued, opens, closes, expires] = ["issued", "opens", "closes", "expires"].map((name) => schema.moment(data[name], name));
  const words = (/** @type {any} */ value, /** @type {string} */ field) => schema.words(value, field, languages);
  const survey = {
    survey: schema.hex128(data.survey, "survey"),
    version: schema.integer(data.version, "version", 1),
    prev: schema.optional(data.prev, "prev", schema.digest),
    opens, closes, expires, languages, digest,
    title: words(data.title, "title"),
    consent: schema.optional(data.consent, "consent", words),
    collectUrl: schema.text(data.collect_url, "collect_url", 2000),
    minReports: schema.integer(data.min_reports, "min_reports", 1),
    strata: schema.items(data.strata, "strata", 0, 8, question(languages)),
    blocks: schema.items(data.blocks, "blocks", 1, 100, block(languages)),
    token: schema.optional(data.token, "token", tokenRule),
  };
  if (!(issued <= opens && opens < closes && closes <= expires)) throw schema.reject("times must satisfy issued ≤ opens < closes ≤ expires", "expires");
  if (expires > issued + 400 * DAY) throw schema.reject("a document is valid for at most 400 days", "expires");
  if ((survey.prev === null) !== (survey.version === 1)) throw schema.reject("the first version, and only the first, has no predecessor", "prev");
  schema.distinct(survey.blocks.map((entry) => entry.id), "blocks");
  schema.distinct([...questionsOf(survey), ...survey.strata].map((entry) => entry.id), "blocks");
  return survey;
}

/** Every question to be randomised, in the document's order. */
export const questionsOf = (/** @type {{blocks: Block[]}} */ survey) => survey.blocks.flatMap((entry) => entry.questions);

/** Step 6: may it be answered at `now`, give or take 10 minutes? */
export function requireWindow(/** @type {Survey} */ { opens, closes, expires }, /** @type {number} */ now) {
  if (now < opens - CLOCK_SKEW || now > Math.min(closes, expires) + CLOCK_SKEW)
    throw new ClockError(
      `the survey is open from ${schema.time(opens)} to ${schema.time(closes)}, this device's clock says ${schema.time(now)}`,
      now < opens ? "opens" : "closes",
    );
}

/** Step 9: every promise of every block, exactly; what would take too long is refused before any work is done. */
export async function requireAllPrivate(/** @type {Survey} */ survey) {
  const all = survey.blocks.flatMap((entry, i) => entry.promises.map(({ claim }, c) => ({ claim, mechanism: entry.mechanism, path: `blocks[${i}].claims[${c}]` })));
  const each = (/** @type {(one: typeof all[0]) => void} */ check) => {
    for (const one of all)
      try {
        check(one);
      } catch (error) {
        throw error instanceof DocumentRejected ? error.under(one.path) : error;
      }
  };
  each((one) => requireSound(one.claim, one.mechanism.answers));
  if (all.reduce((sum, one) => sum + work(one.mechanism, one.claim), 0) > MAX_WORK)
    throw new DocumentRejected("privacy", "verifying all that is promised would take too long", "blocks");
  await prepare(all.map((one) => one.claim));
  each((one) => requirePrivate(one.mechanism, one.claim));
}

/**
 * A report as JSON. @typedef {{doc: string, id: string, y: any[], strata: Record<string, string>, token: string | null}} Report
 * Ids that are whole numbers come first in a JavaScript object: the server reads no order.
 */
export function textOfReport(/** @type {Report} */ { doc, id, y, strata, token }) {
  const sorted = Object.fromEntries(Object.entries(strata).sort(([a], [b]) => (a < b ? -1 : 1)));
  return JSON.stringify({ v: 1, doc, id, y, strata: sorted, token });
}

/** A report's bytes, padded with spaces to `length` so that its size says nothing. */
export const reportBytes = (/** @type {Report} */ report, length = 0) => bytesOf(textOfReport(report).padEnd(length));

/** The one length in bytes that every report on this document is padded to. */
export function reportLength(/** @type {Survey} */ survey) {
  const longest = (/** @type {Question} */ q) => q.choices.reduce((best, choice) => (choice.id.length > best.length ? choice.id : best), "");
  return reportBytes({
    doc: survey.digest,
    id: "0".repeat(32),
    y: survey.blocks.map((entry) => entry.mechanism.longest),
    strata: Object.fromEntries(survey.strata.map((q) => [q.id, longest(q)])),
    token: survey.token ? "0".repeat(1400) : null,
  }).length;
}
