// SPDX-License-Identifier: Apache-2.0
/** `frankly.survey/2`: readers of its parts, in the order of the Python package (docs/protocol.md §3.2). */

import { MAX_COUNTS, MAX_WORK, NOTIONS, requirePrivate, requireSound, statedCeiling, work } from "./audit.js";
import { loads, textOf } from "./canonical.js";
import { DocumentRejected, UnsupportedDocument } from "./errors.js";
import { kinds } from "./mechanisms.js";
import { loadParts, parts, partsOf } from "./parts.js";
import { compare, rational } from "./rational.js";
import { any, base64url, chosen, digest, hex128, identifier, integer, language, list, moment, object, optional, ratio } from "./schema.js";
import { reject, requireDistinct, requireKeys, text, under, words } from "./schema.js";
import { LONGEST_VALID, isStratified, openQuestions, questionsOf } from "./survey.js";

/**
 * @typedef {import("./audit.js").Claim} Claim
 * @typedef {import("./survey.js").Question} Question
 * @typedef {import("./survey.js").Table} Table
 * @typedef {import("./survey.js").Prior} Prior
 * @typedef {import("./survey.js").Promised} Promised
 * @typedef {import("./survey.js").Block} Block
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./schema.js").Read<any>} Read
 */

const idOf = (/** @type {{id: string}} */ entry) => entry.id;
const isPlain = (/** @type {object} */ choice) => Object.keys(choice).length === 2;
const itself = (/** @type {string} */ name) => name;
const counts = list(2, 256, integer());
const level = optional(ratio());

/** @returns {Question} */
function question(/** @type {any} */ value, /** @type {string} */ path, /** @type {any} */ root) {
  const { ways } = parts, choices = list(2, 1000, object({ id: identifier, label: words }, [], ways?.CHOICE));
  const read = object({ id: identifier, text: words, choices }, [], ways?.QUESTION)(value, path, root);
  requireDistinct(read.choices.map(idOf), under(path, "choices"));
  ways?.requireForm(read, path);
  return read;
}

/** @returns {Question} */
function publicQuestion(/** @type {any} */ value, /** @type {string} */ path, /** @type {any} */ root) {
  const read = question(value, path, root);
  if (read.box || read.ask_if || read.wanted || read.anchor || !read.choices.every(isPlain)) throw reject(path, "public_plain");
  return read;
}

/** @returns {import("./survey.js").Instructed} */
function instructed(/** @type {any} */ value, /** @type {string} */ path, /** @type {any} */ root) {
  requireKeys(value, path, ["id", "text", "choices", "answer"]);
  const { answer, ...plain } = value, read = publicQuestion(plain, path, root);
  if (!read.choices.some(({ id }) => id === answer)) throw reject(under(path, "answer"), "no_item_choice");
  return { ...read, answer };
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
const FIELDS = { level, low_level: level, prior };

/** @returns {Promised} */
function promised(/** @type {any} */ value, /** @type {string} */ path) {
  const { rare } = parts, readers = { ...FIELDS, ...rare?.FIELDS };
  const names = chosen(value, path, "notion", { ...NOTIONS, ...rare?.NOTIONS })?.fields.split(" ") ?? [];
  const fields = Object.fromEntries(names.map((/** @type {string} */ name) => [name, readers[name]]));
  const { prior: known, secret = null, source = null, ...rest } = object(fields, ["notion"])(value, path);
  if (!rest.level && !rest.low_level) throw reject(under(path, "level"), "low_level" in rest ? "open_levels" : "open_level");
  if (rest.sensitive) rest.sensitive = rare.placeOf(rest.sensitive, known.secrets, path);
  const claim = { notion: value.notion, ...rest, ...(known && { joint: known.joint }) };
  return { claim, secret, source, prior: known ?? null, ...(known && { secret: known.secret, source: known.source }) };
}

/** @type {Read} */
const block = (value, path, root) => {
  /** @type {import("./mechanisms.js").Kind | undefined} */
  const kind = chosen(value, path, "kind", kinds());
  const read = object({
    id: identifier,
    questions: list(1, kind?.questions ?? 16, question),
    kind: () => /** @type {import("./mechanisms.js").Kind} */ (kind).read(value, path),
    claims: list(1, 16, promised),
    design_prior: list(2, kind?.counts ?? 1000, integer()),
    ceiling: optional((v, at) => rational(...ratio()(v, at))),
    mechanism: identifier,
    certificate: optional(object({ objective: identifier, value: text(64), bound: optional(text(64)) })),
  }, kind?.params, kind?.questions ? parts.plans?.BLOCK : undefined)(value, path, root);
  const { id, questions, kind: mechanism, claims: promises, design_prior: design, ceiling, ask } = read;
  const answers = countedAnswers(mechanism, questions, path);
  if (design.length !== answers || !design.every(Boolean)) throw reject(under(path, "design_prior"), "design_prior", answers);
  // Priors of one row expand to a row per answer, and covers of a form to all their sets: a document of 4 MiB could
  // fill the memory.
  root.counts = promises.reduce((/** @type {number} */ all, /** @type {Promised} */ { prior: known, claim }) =>
    all + (known ? known.tables.length * known.secrets.length * /** @type {number[][]} */ (claim.joint)[0].length : 0), (root.counts ?? 0) + (mechanism.cells ?? 0));
  if (root.counts > MAX_COUNTS) throw new DocumentRejected("work_limit", path, "many_counts");
  if (compare(ceiling, statedCeiling(mechanism))) throw new DocumentRejected("privacy", under(path, "ceiling"), "ceiling_of_another");
  const parameters = Object.fromEntries(["kind", ...(kind?.params ?? [])].map((name) => [name, value[name]]));
  return { id, questions, parameters, mechanism, promises, ceiling, ask, restsOnPrior: promises.some((/** @type {Promised} */ one) => one.secret !== null) };
};

/** Return the number of counts in a block's design prior: one per joint answer, or, for a form, one per choice of each question. */
function countedAnswers(/** @type {import("./mechanisms.js").Mechanism} */ mechanism, /** @type {Question[]} */ questions, /** @type {string} */ path) {
  const sizes = questions.map(({ choices }) => choices.length), answers = sizes.reduce((all, n) => all * n, 1);
  if (mechanism.counts) return mechanism.counts(sizes, path);
  if (mechanism.answers !== answers) throw new DocumentRejected("weights", under(path, mechanism.shape), "rows_of_answers", answers);
  return answers;
}

/** @type {Read} */
const token = (value, path) => (value?.kind === "sources" ? parts.sources.read(value, path, tokenOfOne) : tokenOfOne(value, path));

/** @type {Read} */
const tokenOfOne = (value, path) => {
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
  type: any,
}, ["token"], { instructed, arms: (value, path) => parts.arms.read(value, path), token: optional(token) }); // the token is required; it is read after these, as in Python

/** Read exact payload bytes, whose digest is `name` (steps 1, 4, 5). @returns {Promise<Survey>} */
export async function readSurvey(/** @type {Uint8Array} */ payload, /** @type {string} */ name) {
  const data = loads(payload);
  if (data?.type !== "frankly.survey/2") throw new UnsupportedDocument("type", "no_survey");
  const needed = partsOf(textOf(payload));
  await loadParts(needed);
  const found = survey(data, "");
  const { issued, opens, closes, expires, blocks, arms } = found;
  if (!(issued <= opens && opens < closes && closes <= expires)) throw reject("expires", "order_of_times");
  if (expires > issued + LONGEST_VALID) throw reject("expires", "too_long_valid");
  if (found.release_every !== "day" && found.release_every !== "hour") throw reject("release_every", "release_every");
  if (found.release_step > found.min_reports) throw reject("release_step", "release_step");
  if ((found.prev === null) !== (found.version === 1)) throw reject("prev", "predecessor");
  requireDistinct(blocks.map(idOf), "blocks");
  if (arms) parts.arms.requireArms(found);
  for (const view of arms ? parts.arms.viewsOf(found) : [found]) requireView(view, blocks);
  const read = { ...found, digest: name, collectUrl: found.collect_url, parts: needed };
  return arms ? { ...read, longest: parts.arms.longestOf(read) } : read;
}

/** Throw unless the questions, priors and item fit each other of a document without arms, or of the view of an arm; `all` : the blocks of the whole document. */
function requireView(/** @type {Survey} */ view, /** @type {Block[]} */ all) {
  const { blocks, strata, instructed: item, arms } = view, questions = questionsOf(view);
  requireDistinct([...questions, ...openQuestions(view), ...(arms ? [arms] : [])].map(idOf), "blocks");
  parts.ways?.requireRules(questions);
  const cells = strata.reduce((product, { choices }) => product * choices.length, 1);
  for (const { prior: known, path, id } of promisesOf(view, all))
    if (known && (![1, cells].includes(known.tables.length) || (known.tables.length > 1 && arms && !parts.arms.isLikeEarlier(view, id)))) throw reject(`${path}.prior.tables`, "tables_of_strata", cells);
  if (item && blocks.some(({ restsOnPrior }) => restsOnPrior)) throw reject("instructed", "item_beside_prior");
  if (item && questions.some(({ anchor }) => anchor)) throw reject("instructed", "item_beside_anchor");
  if (view.token?.rules) parts.sources.requireSources(view);
}

/** Return every promise with its mechanism and its path, in which a block has its position among `all` blocks. */
const promisesOf = (/** @type {{blocks: Block[]}} */ { blocks }, all = blocks) => blocks.flatMap((block) => block.promises.map((one, c) =>
  ({ ...one, mechanism: block.mechanism, id: block.id, path: `blocks[${all.indexOf(block)}].claims[${c}]` })));

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
    } else if (present.includes(sensitive)) yield { ...claim, joint, sensitive: present.indexOf(sensitive) }; // with a single row, the secret is certain, and the verifier refuses the claim
  }
}

/** Verify every promise of every block exactly (step 9); promises that would take too long are refused first. */
export function requireAllPrivate(/** @type {Survey} */ survey) {
  const all = promisesOf(survey);
  const each = (/** @type {(promised: (typeof all)[number]) => void} */ check) => {
    for (const one of all)
      try {
        check(one);
      } catch (error) {
        throw error instanceof DocumentRejected ? error.at(under(one.path, /** @type {any} */ (error).field)) : error;
      }
  };
  const claims = all.flatMap((one) => [...claimsOf(one)].map((claim) => ({ mechanism: one.mechanism, claim })));
  if (work(claims, survey.blocks) > MAX_WORK) throw new DocumentRejected("work_limit", "blocks", "all_too_long");
  each(({ mechanism, claim }) => requireSound(mechanism, claim));
  each((one) => {
    for (const claim of claimsOf(one)) requirePrivate(one.mechanism, claim);
  });
}
