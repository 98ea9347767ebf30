// SPDX-License-Identifier: Apache-2.0
/** `frankly.survey/2`: readers of its parts, in the order of the Python package (docs/protocol.md §3.2). */

import { MAX_COUNTS, MAX_WORK, SHORT_WORK, prepare, requirePrivate, requireSound, statedCeiling, work } from "./audit.js";
import { BOX_CHOICES, boxId, groupsOf } from "./answers.js";
import { bytesOf, loads } from "./canonical.js";
import { ClockError, DocumentRejected, UnsupportedDocument, part } from "./errors.js";
import { KINDS as NUMBERED } from "./mechanisms.js";
import { compare, rational } from "./rational.js";
import { any, base64url, chosen, digest, flag, hex128, identifier, integer, language, list, matching, moment, object, optional, ratio } from "./schema.js";
import { reject, requireDistinct, requireKeys, text, under, words } from "./schema.js";

/**
 * @typedef {import("./audit.js").Claim} Claim
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {Record<string, string>} Words a text per language
 * @typedef {{id: string, label: Words, role?: string, from?: number, score?: string}} Choice spec 3.5, as are a question's `box` and `ask_if`
 * @typedef {{of: string, text: Words, label: Words, role?: string}} Box
 * @typedef {{question: string, choices: string[]}} Rule
 * @typedef {{id: string, text: Words, choices: Choice[], box?: Box, ask_if?: Rule}} Question
 * @typedef {number[][]} Table counts [s][x]; if the answer itself is the secret, a single row or a diagonal table
 * @typedef {{secret: string, secrets: string[], source: string, tables: Table[]}} Prior one table, or one for each stratum
 * @typedef {{claim: Claim, secret: string | null, source: string | null, prior: Prior | null}} Promised the claim's joint is the sum over all strata
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

const role = matching(/^(no_answer|not_applicable)$/, "no_role");
const score = matching(/^(?!-0$)-?(0|[1-9]\d{0,8})(\.\d{0,5}[1-9])?$/, "no_score");
const questionParts = object({
  id: identifier,
  text: words,
  choices: list(2, 1000, object({ id: identifier, label: words }, [], { role, from: integer(-Number.MAX_SAFE_INTEGER), score })),
}, [], {
  box: object({ of: identifier, text: words, label: words }, [], { role }),
  ask_if: object({ choices: list(1, 63, identifier, itself), question: identifier }),
});

const isPlain = (/** @type {Choice} */ choice) => Object.keys(choice).length === 2;

/** Throw if two entries have the same role, if all have one, or if a rule can skip the question and no entry has the role for that. */
function requireRoles(/** @type {{role?: string}[]} */ entries, /** @type {Rule | undefined} */ rule, /** @type {string} */ path) {
  const roles = entries.flatMap(({ role }) => role ?? []);
  requireDistinct(roles, path);
  if (roles.length === entries.length) throw reject(path, "only_roles");
  if (rule && !roles.includes("not_applicable")) throw reject(path, "no_skipped");
}

/** @returns {Question} */
function question(/** @type {any} */ value, /** @type {string} */ path, /** @type {any} */ root) {
  const read = questionParts(value, path, root), { id, box } = read, at = under(path, "choices");
  /** @type {Choice[]} */
  const choices = read.choices, answers = choices.filter((choice) => !choice.role);
  requireDistinct(choices.map(idOf), at);
  requireRoles(choices, undefined, at);
  for (const name of ["from", "score"])
    if (choices.some((choice) => name in choice !== (!choice.role && name in answers[0]))) throw reject(at, "not_all", name);
  const lows = answers.flatMap(({ from }) => from ?? []);
  if (lows.some((low, i) => low <= lows[i - 1])) throw reject(at, "order_of_ranges");
  if (!box) return read;
  if (choices.some((choice, i) => choice.id !== BOX_CHOICES[i] || !isPlain(choice))) throw reject(at, "box_choices");
  if (!(id.startsWith(`${box.of}-`) && boxId(read))) throw reject(under(path, "id"), "box_id", box.of);
  return read;
}

/** @returns {Question} */
function publicQuestion(/** @type {any} */ value, /** @type {string} */ path, /** @type {any} */ root) {
  const read = question(value, path, root);
  if (read.box || read.ask_if || !read.choices.every(isPlain)) throw reject(path, "public_plain");
  return read;
}

/** Throw unless the boxes of a question are neighbours and rules refer to earlier choices; `questions` : all randomised ones, in the document's order. */
function requireRules(/** @type {Question[]} */ questions) {
  /** @type {Map<string, string[]>} */
  const earlier = new Map();
  for (const { id, choices, box, ask_if: rule } of questions) {
    if (rule && !rule.choices.every((choice) => earlier.get(rule.question)?.includes(choice))) throw reject(id, "no_earlier");
    if (!box) requireRoles(choices, rule, id);
    earlier.set(id, choices.map(idOf));
  }
  const names = new Set(earlier.keys());
  for (const group of groupsOf(questions)) {
    const { box, ask_if: rule } = group[0], alike = (/** @type {Question} */ one) => JSON.stringify([one.box?.text, one.ask_if]);
    if (!box) continue;
    if (names.has(box.of)) throw reject(box.of, "boxes_apart");
    names.add(box.of);
    if (group.some((one) => alike(one) !== alike(group[0]))) throw reject(box.of, "boxes_differ");
    requireRoles(group.map((one) => /** @type {Box} */ (one.box)), rule, box.of);
  }
}

/** Largest number of tables in one prior, one for each stratum. */
const MAX_STRATA = 4096;
const isDiagonal = (/** @type {Table} */ table) => table.length === table[0].length && table.every((row, s) => row.every((n, x) => s === x || !n));

/** @type {Read} */
const priorParts = object({
  secrets: list(2, 256, identifier, itself),
  tables: (value, path, _root, { secrets: { length } }) => {
    const tables = list(1, MAX_STRATA, list(1, 256, counts))(value, path), [[{ length: columns }]] = tables;
    if (tables.length * length * columns > MAX_COUNTS) throw new DocumentRejected("work_limit", path, "many_counts");
    for (const [z, table] of tables.entries()) {
      const place = `${path}[${z}]`, isOneRow = table.length === 1;
      if (isOneRow ? table[0].length !== length : table.length !== length) throw reject(place, "prior_rows", length);
      if (table.length !== tables[0].length || table.some((row) => row.length !== columns)) throw reject(place, "prior_columns_differ");
      if (tables.length > 1 && !table.some((row) => row.some(Boolean))) throw reject(place, "empty_stratum");
    }
    return tables.map((table) => (isDiagonal(table) ? [table.map((row, s) => row[s])] : table));
  },
  secret: identifier,
  source: text(),
});

/** @returns {Prior & {joint: number[][]}} */
function prior(/** @type {any} */ value, /** @type {string} */ path) {
  const read = priorParts(value, path), joint = together(read.tables.map(rowsOf));
  // The check is safe: a sum of 2^53 or more is never rounded to a number below 2^53.
  if (!joint.flat().every(Number.isSafeInteger)) throw reject(under(path, "tables"), "counts_too_large");
  return { ...read, joint };
}

/** Return a table with one row per secret. @returns {number[][]} */
const rowsOf = (/** @type {Table} */ table) => (table.length > 1 ? table : table[0].map((n, s) => table[0].map((_, x) => (s === x ? n : 0))));

/** Return the sum of the tables of all strata. @returns {number[][]} */
const together = (/** @type {number[][][]} */ [first, ...others]) =>
  others.reduce((all, table) => all.map((row, s) => row.map((n, x) => n + table[s][x])), first);

/** Readers of a claim's fields, apart from its notion. @type {Record<string, Read>} */
const PARTS = {
  level,
  low_level: level,
  delta: ratio(0),
  prior,
  attributes: list(1, 8, integer(2, 256)),
  lower_bounds: list(2, 256, list(1, 128, ratio(0))),
  diagonal: flag,
  levels: list(2, 256, list(2, 256, level)),
  secret: identifier,
  source: text(),
  sensitive: identifier,
};

/** Fields of each notion, in the order in which they are read. @type {Record<string, string>} */
const NOTIONS = {
  ldp: "level",
  dp: "level delta",
  "secret-ldp": "level prior",
  lip: "level prior",
  alip: "level low_level prior",
  srlip: "level prior attributes",
  rldp: "level lower_bounds diagonal secret source",
  dpv: "level prior sensitive",
  "metric-ldp": "level levels",
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
  return { claim, secret, source, prior: known ?? null, ...(known && { secret: known.secret, source: known.source }) };
}

/** @type {typeof import("./agreement.js")} */
let forms;
const AGREEMENT = { params: ["bits", "agree", "disagree", "choices", "parts", "components"], read: (/** @type {any} */ value, /** @type {string} */ path) => forms.read(value, path) };
const KINDS = { ...NUMBERED, agreement: AGREEMENT };

/** @type {Read} */
const block = (value, path, root) => {
  const kind = chosen(value, path, "kind", KINDS);
  const read = object({
    id: identifier,
    questions: list(1, kind === AGREEMENT ? 100 : 16, question),
    kind: () => kind.read(value, path),
    claims: list(1, 16, promised),
    design_prior: list(2, kind === AGREEMENT ? 2000 : 1000, integer()),
    ceiling: optional((v, at) => rational(...ratio()(v, at))),
    mechanism: identifier,
    certificate: optional(object({ objective: identifier, value: text(64), bound: optional(text(64)) })),
  }, kind?.params)(value, path, root);
  const { id, questions, kind: mechanism, claims: promises, design_prior: design, ceiling } = read;
  const answers = countedAnswers(mechanism, questions, path, id);
  if (design.length !== answers || !design.every(Boolean)) throw reject(under(path, "design_prior"), "design_prior", answers);
  // Priors of one row expand to a row per answer, and covers of a form to all their sets: 4 MiB of them would fill the memory.
  root.counts = promises.reduce((/** @type {number} */ all, /** @type {Promised} */ { prior: known, claim }) =>
    all + (known ? known.tables.length * known.secrets.length * /** @type {number[][]} */ (claim.joint)[0].length : 0), (root.counts ?? 0) + (mechanism.cells ?? 0));
  if (root.counts > MAX_COUNTS) throw new DocumentRejected("work_limit", path, "many_counts");
  if (compare(ceiling, statedCeiling(mechanism))) throw new DocumentRejected("privacy", under(path, "ceiling"), "ceiling_of_another");
  return { id, questions, mechanism, promises, ceiling, restsOnPrior: promises.some((/** @type {Promised} */ one) => one.secret !== null) };
};

/** Return the number of counts in a block's design prior: one per joint answer, or for a form one per choice of each question. */
function countedAnswers(/** @type {any} */ mechanism, /** @type {Question[]} */ questions, /** @type {string} */ path, /** @type {string} */ id) {
  const sizes = questions.map(({ choices }) => choices.length);
  if (mechanism.kind === "agreement") {
    if (String(sizes) !== String(mechanism.choices)) throw new DocumentRejected("weights", under(path, "choices"), "choices_of_questions");
    return sizes.reduce((all, n) => all + n, 0);
  }
  const answers = sizes.reduce((all, n) => all * n, 1);
  if (mechanism.answers !== answers) throw new DocumentRejected("weights", under(path, mechanism.shape), "rows_of_answers", answers);
  return answers;
}

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
  min_reports: integer(2),
  release_every: text(),
  release_step: integer(2),
  strata: list(0, 8, publicQuestion),
  blocks: list(1, 100, block),
  token: optional(token),
  type: any,
});

/** Read exact payload bytes, whose digest is `name` (steps 1, 4, 5). @returns {Promise<Survey>} */
export async function readSurvey(/** @type {Uint8Array} */ payload, /** @type {string} */ name) {
  const data = loads(payload);
  if (data?.type !== "frankly.survey/2") throw new UnsupportedDocument("type", "no_survey");
  if (Array.isArray(data.blocks) && data.blocks.some((/** @type {any} */ entry) => entry?.kind === "agreement")) forms = await part(() => import("./agreement.js"));
  const found = survey(data, "");
  const { issued, opens, closes, expires, blocks, strata } = found;
  if (!(issued <= opens && opens < closes && closes <= expires)) throw reject("expires", "order_of_times");
  if (expires > issued + LONGEST_VALID) throw reject("expires", "too_long_valid");
  if (found.release_every !== "day" && found.release_every !== "hour") throw reject("release_every", "release_every");
  if (found.release_step > found.min_reports) throw reject("release_step", "release_step");
  if ((found.prev === null) !== (found.version === 1)) throw reject("prev", "predecessor");
  requireDistinct(blocks.map(idOf), "blocks");
  requireDistinct([...questionsOf(found), ...strata].map(idOf), "blocks");
  requireRules(questionsOf(found));
  const cells = strata.reduce((/** @type {number} */ all, /** @type {Question} */ { choices }) => all * choices.length, 1);
  for (const { prior: known, path } of promisesOf(found))
    if (known && ![1, cells].includes(known.tables.length)) throw reject(`${path}.prior.tables`, "tables_of_strata", cells);
  return { ...found, digest: name, collectUrl: found.collect_url };
}

/** Return the questions whose answers are randomised, in the document's order. */
export const questionsOf = (/** @type {{blocks: Block[]}} */ { blocks }) => blocks.flatMap((entry) => entry.questions);

/** Throw ClockError unless the survey is open at `now`, with a tolerance of 10 minutes (step 6). */
export function requireWindow(/** @type {Survey} */ { opens, closes, expires }, /** @type {number} */ now) {
  if (now < opens - CLOCK_SKEW || now > Math.min(closes, expires) + CLOCK_SKEW)
    throw new ClockError(now < opens ? "opens" : "closes", "window", opens, closes, now);
}

/** Return every promise with its mechanism and its path. */
const promisesOf = (/** @type {{blocks: Block[]}} */ { blocks }) =>
  blocks.flatMap(({ mechanism, promises }, i) => promises.map((one, c) => ({ ...one, mechanism, path: `blocks[${i}].claims[${c}]` })));

/** Return true if the claim is made within every stratum, given the public answers. */
export const isStratified = (/** @type {Promised} */ { prior: known }) => known !== null && known.tables.length > 1;

/**
 * Yield the claims that the mechanism must keep: the claim itself, or one within each stratum, without the secrets that
 * cannot occur there. If only one secret can occur in a stratum, the stratum alone determines it. @returns {Generator<Claim>}
 */
function* claimsOf(/** @type {Promised} */ promise) {
  const { claim, prior: known } = promise, { sensitive } = claim;
  if (!known || !isStratified(promise)) return yield claim;
  for (const table of known.tables) {
    const rows = rowsOf(table), present = [...rows.keys()].filter((s) => rows[s].some(Boolean)), joint = present.map((s) => rows[s]);
    if (sensitive === undefined) {
      if (present.length > 1) yield { ...claim, joint };
    } else if (present.includes(sensitive)) yield { ...claim, joint, sensitive: present.indexOf(sensitive) }; // a single row makes the secret certain: refused by the verifier
  }
}

/**
 * Verify every promise of every block exactly (step 9); promises that would take too long are refused first. If `payload`
 * is given, a worker does work that would block the page.
 * @returns {Promise<void>}
 */
export async function requireAllPrivate(/** @type {Survey} */ survey, /** @type {Uint8Array | null} */ payload = null) {
  const all = promisesOf(survey);
  const each = (/** @type {(promised: (typeof all)[number]) => void} */ check) => {
    for (const one of all)
      try {
        check(one);
      } catch (error) {
        throw error instanceof DocumentRejected ? error.at(under(one.path, /** @type {any} */ (error).field)) : error;
      }
  };
  await prepare(all.map((one) => one.claim));
  const claims = all.flatMap((one) => [...claimsOf(one)].map((claim) => ({ mechanism: one.mechanism, claim })));
  const units = work(claims, survey.blocks, payload ? SHORT_WORK : MAX_WORK);
  if (units > MAX_WORK) throw new DocumentRejected("work_limit", "blocks", "all_too_long");
  if (payload && units > SHORT_WORK) {
    const { verifyBeside } = await part(() => import("./beside.js"));
    const verdict = await verifyBeside(payload, survey.digest);
    if (verdict) throw new DocumentRejected(...verdict);
    return verdict === null ? undefined : requireAllPrivate(survey);
  }
  each(({ mechanism, claim }) => requireSound(mechanism, claim));
  each((one) => {
    for (const claim of claimsOf(one)) requirePrivate(one.mechanism, claim);
  });
}

/**
 * A report as JSON. @typedef {{doc: string, id: string, y: any[], strata: Record<string, string>, token: string | null}} Report
 * JavaScript puts keys that are whole numbers first, which is harmless: the server ignores the order.
 */
export function textOfReport(/** @type {Report} */ { doc, id, y, strata, token }) {
  const sorted = Object.fromEntries(Object.entries(strata).sort(([a], [b]) => (a < b ? -1 : 1)));
  return JSON.stringify({ v: 1, doc, id, y, strata: sorted, token });
}

/** Return a report's bytes, padded with spaces to `length` to hide its size. */
export const reportBytes = (/** @type {Report} */ report, length = 0) => bytesOf(textOfReport(report).padEnd(length));

/** Return the length in bytes to which every report on this document is padded. */
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
