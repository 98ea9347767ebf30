// SPDX-License-Identifier: Apache-2.0
/** `frankly.survey/1`: what its parts must look like, read in the order of the Python package (docs/protocol.md §3.2). */

import { prepare, requirePrivate, requireSound, statedCeiling, work, MAX_WORK } from "./audit.js";
import { bytesOf, loads } from "./canonical.js";
import { ClockError, DocumentRejected, UnsupportedDocument } from "./errors.js";
import { KINDS } from "./mechanisms.js";
import { compare, rational } from "./rational.js";
import { any, base64url, chosen, digest, flag, hex128, identifier, integer, language, list, moment, object, optional, ratio } from "./schema.js";
import { reject, requireDistinct, requireKeys, text, under, words } from "./schema.js";

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
 * @typedef {import("./schema.js").Read<any>} Read
 */

export const CLOCK_SKEW = 600_000;
export const LONGEST_VALID = 400 * 86_400_000;

const idOf = (/** @type {{id: string}} */ entry) => entry.id;
const itself = (/** @type {string} */ name) => name;
const counts = list(2, 256, integer());
const level = optional(ratio());

const question = object({
  choices: list(2, 64, object({ id: identifier, label: words }), idOf),
  id: identifier,
  text: words,
});

/** One row means that the answer itself is the secret: a diagonal. */
const prior = object({
  secrets: list(2, 256, identifier, itself),
  joint: (value, path, _root, { secrets: { length } }) => {
    const joint = list(1, 256, counts)(value, path), [first] = joint;
    if (joint.length > 1 ? joint.length !== length : first.length !== length) throw reject(path, "prior_rows", length);
    return joint.length > 1 ? joint : first.map((n, s) => first.map((_, x) => (s === x ? n : 0)));
  },
  secret: identifier,
  source: text(),
});

/** What a claim may say beside its notion. @type {Record<string, Read>} */
const PARTS = {
  level,
  low_level: level,
  delta: ratio(0),
  prior,
  attributes: list(1, 8, integer(2, 256)),
  lower_bounds: list(2, 256, list(1, 128, ratio(0))),
  diagonal: flag,
  secret: identifier,
  source: text(),
  sensitive: identifier,
};

/** What each notion says, in the order in which it is read. @type {Record<string, string>} */
const NOTIONS = {
  ldp: "level",
  dp: "level delta",
  "secret-ldp": "level prior",
  lip: "level prior",
  alip: "level low_level prior",
  srlip: "level prior attributes",
  rldp: "level lower_bounds diagonal secret source",
  dpv: "level prior sensitive",
};

/** @returns {Promised} */
function promised(/** @type {any} */ value, /** @type {string} */ path) {
  const names = chosen(value, path, "notion", NOTIONS)?.split(" ") ?? [];
  const parts = Object.fromEntries(names.map((/** @type {string} */ name) => [name, PARTS[name]]));
  const { prior: known, secret = null, source = null, ...rest } = object(parts, ["notion"])(value, path);
  const { notion } = value;
  if (!rest.level && !(notion === "alip" && rest.low_level)) throw reject(under(path, "level"), notion === "alip" ? "open_levels" : "open_level");
  if (rest.sensitive) {
    rest.sensitive = known.secrets.indexOf(rest.sensitive);
    if (rest.sensitive < 0) throw reject(under(path, "sensitive"), "no_secret");
  }
  const claim = { notion, ...rest, ...(known && { joint: known.joint }) };
  return { claim, secret, source, secrets: [], ...(known && { secret: known.secret, source: known.source, secrets: known.secrets }) };
}

/** @type {Read} */
const block = (value, path, root) => {
  const kind = chosen(value, path, "kind", KINDS);
  const read = object({
    id: identifier,
    questions: list(1, 16, question),
    kind: () => kind.read(value, path),
    claims: list(1, 16, promised),
    design_prior: counts,
    ceiling: optional((v, at) => rational(...ratio()(v, at))),
    mechanism: identifier,
    certificate: optional(object({ objective: identifier, value: text(64), bound: optional(text(64)) })),
  }, kind?.params)(value, path, root);
  const { id, questions, kind: mechanism, claims: promises, design_prior: design, ceiling } = read;
  const answers = questions.reduce((/** @type {number} */ all, /** @type {Question} */ q) => all * q.choices.length, 1);
  if (answers > 256) throw reject(under(path, id), "too_many_answers");
  if (mechanism.answers !== answers) throw new DocumentRejected("weights", under(path, mechanism.shape), "rows_of_answers", answers);
  if (design.length !== answers || !design.every(Boolean)) throw reject(under(path, "design_prior"), "design_prior", answers);
  if (compare(ceiling, statedCeiling(mechanism))) throw new DocumentRejected("privacy", under(path, "ceiling"), "ceiling_of_another");
  return { id, questions, mechanism, promises, ceiling, restsOnPrior: promises.some((/** @type {Promised} */ one) => one.secret !== null) };
};

/** @type {Read} */
const token = (value, path) => {
  requireKeys(value, path, ["kind", "key"]);
  const { kind, key } = value;
  if (kind === "rsa-pss") base64url(key, under(path, "key"));
  else if (kind !== "invite") throw new UnsupportedDocument(under(path, "kind"), "unknown_name", "token");
  else if (key !== null) throw reject(under(path, "key"), "invite_key");
  return value;
};

const survey = object({
  languages: list(1, 32, language, itself),
  issued: moment,
  opens: moment,
  closes: moment,
  expires: moment,
  survey: hex128,
  version: integer(1),
  prev: optional(digest),
  title: words,
  consent: optional(words),
  collect_url: text(2000),
  min_reports: integer(1),
  strata: list(0, 8, question),
  blocks: list(1, 100, block),
  token: optional(token),
  type: any,
});

/** Read exact payload bytes whose digest is known (steps 1, 4, 5). @returns {Survey} */
export function readSurvey(/** @type {Uint8Array} */ payload, /** @type {string} */ name) {
  const data = loads(payload);
  if (data?.type !== "frankly.survey/1") throw new UnsupportedDocument("type", "no_survey");
  const found = survey(data, "");
  const { issued, opens, closes, expires, blocks, strata } = found;
  if (!(issued <= opens && opens < closes && closes <= expires)) throw reject("expires", "order_of_times");
  if (expires > issued + LONGEST_VALID) throw reject("expires", "too_long_valid");
  if ((found.prev === null) !== (found.version === 1)) throw reject("prev", "predecessor");
  requireDistinct(blocks.map(idOf), "blocks");
  requireDistinct([...questionsOf(found), ...strata].map(idOf), "blocks");
  return { ...found, digest: name, collectUrl: found.collect_url };
}

/** Every question to be randomised, in the document's order. */
export const questionsOf = (/** @type {{blocks: Block[]}} */ { blocks }) => blocks.flatMap((entry) => entry.questions);

/** Step 6: may it be answered at `now`, give or take 10 minutes? */
export function requireWindow(/** @type {Survey} */ { opens, closes, expires }, /** @type {number} */ now) {
  if (now < opens - CLOCK_SKEW || now > Math.min(closes, expires) + CLOCK_SKEW)
    throw new ClockError(now < opens ? "opens" : "closes", "window", opens, closes, now);
}

/** Step 9: every promise of every block, exactly; what would take too long is refused before any work is done. */
export async function requireAllPrivate(/** @type {Survey} */ { blocks }) {
  const all = blocks.flatMap(({ mechanism, promises }, i) => promises.map(({ claim }, c) => ({ claim, mechanism, path: `blocks[${i}].claims[${c}]` })));
  const each = (/** @type {(mechanism: import("./mechanisms.js").Mechanism, claim: Claim) => any} */ check) => {
    for (const { claim, mechanism, path } of all)
      try {
        check(mechanism, claim);
      } catch (error) {
        throw error instanceof DocumentRejected ? error.at(under(path, /** @type {any} */ (error).field)) : error;
      }
  };
  await prepare(all.map((one) => one.claim));
  each(requireSound);
  if (all.reduce((sum, one) => sum + work(one.mechanism, one.claim), 0) > MAX_WORK) throw new DocumentRejected("privacy", "blocks", "all_too_long");
  each(requirePrivate);
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
  const longest = (/** @type {Question} */ { choices }) => "0".repeat(Math.max(...choices.map(({ id }) => id.length)));
  return reportBytes({
    doc: survey.digest,
    id: "0".repeat(32),
    y: survey.blocks.map((entry) => entry.mechanism.longest),
    strata: Object.fromEntries(survey.strata.map((q) => [q.id, longest(q)])),
    token: survey.token ? "0".repeat(1400) : null,
  }).length;
}
