// SPDX-License-Identifier: Apache-2.0
/**
 * Texts of errors and receipts, by key. index.js and element.js load this module immediately, so that it is available
 * without a network; a page with core.js loads it when it has a text to show. No text contains an answer.
 */

import { compare, parseChance } from "./rational.js";
import { time } from "./schema.js";
import { chanceUp, lnUp } from "./shown.js";

const UPDATE = "update the app";
const NAMES = { notion: "unknown notion", kind: "unknown kind of mechanism", token: "unknown kind of token" };
const STRANGER = "the reply did not come from the survey's server";

/** Return a level, the cap, and the δ that the promises need if the app allows less. */
const nats = (/** @type {any[]} */ [level, cap, delta, allowed]) => {
  const isSure = compare(delta, parseChance(allowed, "")) <= 0;
  const but = isSure ? "" : ` (its promises need a δ of ${chanceUp(delta)}, and this app allows ${allowed})`;
  return `${lnUp(level)} nats${but}, but this app allows ${cap}`;
};
const tells = (/** @type {string | null} */ secret, /** @type {any[]} */ given) =>
  `its report can move the odds about ${secret === null ? "the answers" : `“${secret}”`} by ${nats(given)}`;
const about = (/** @type {string} */ text) => (/** @type {string} */ notion) => `${notion}: ${text}`;
const outside = (/** @type {string} */ what) => (/** @type {number[]} */ ...[from, to, now]) =>
  `${what} from ${time(from)} to ${time(to)}, this device's clock says ${time(now)}`;
const choices = (/** @type {string} */ text) => (/** @type {string[]} */ valid) => `${text}; valid: ${valid.join(", ")}`;

/** @type {Record<string, string | ((...values: any[]) => string)>} */
const TEXTS = {
  // Bytes, envelopes, keys.
  too_large: "a payload has at most 4 MiB, an envelope a third more",
  surrogates: "a text contains characters that UTF-8 cannot encode",
  not_whole: "numbers must be whole and below 2^53",
  too_deep: "the body is nested deeper than 9 levels",
  key_not_ascii: "object keys must be ASCII strings",
  not_json_utf8: "the payload is not valid JSON in UTF-8",
  not_canonical: "the payload is not in canonical form",
  no_envelope: "an envelope has exactly payload, payloadType and signatures",
  payload_type: (type) => `expected ${type}`,
  no_base64: "expected base64 text",
  signature_count: "an envelope has 1 to 32 signatures",
  no_signature: "a signature has exactly keyid and sig",
  signed_twice: "a key may sign only once",
  threshold_0: "the threshold must be at least 1",
  signatures: (good, needed) => `${good} of the ${needed} trusted signatures needed are valid`,
  no_ed25519: "this browser does not know Ed25519: give Client.open a `verify` function",
  no_keys: `expected a document of type frankly.keys/2: ${UPDATE}`,
  unknown_scheme: `only ed25519 keys are known: ${UPDATE}`,
  no_name: "a name must have no spaces or plus signs, and at most 255 characters",
  threshold_of_keys: "the threshold must be between 1 and the number of distinct keys",
  log_of_its_own: "the log and each witness need a key and a name of their own",
  threshold_of_witnesses: "the threshold must be between 1 and the number of witnesses",
  expire_after_issue: "keys must expire after they are issued",
  weak_key: "anyone could sign with this key, or it is not in canonical form: create another key",
  chain_start: "a whole chain of keys begins with version 1",
  no_chain: "a chain of keys is an object with exactly the field chain",
  chain_length: (most) => `a chain of keys has 1 to ${most} versions`,
  other_chain: "these keys do not descend from those known here: the server has changed or begun a new chain",
  log_key_alone: "a key of the log or of a witness must have no other role",
  rollback: (version, known) => `version ${version} is older than version ${known}, seen before`,
  equivocation: (version) => `version ${version} has been seen here with other content`,
  no_successor: (version, known) => `version ${version} does not follow version ${known}`,
  strange_root: "the root keys known so far did not sign the new ones",
  keys_window: outside("the keys are valid"),
  // Fields of documents.
  no_object: "expected an object",
  unknown_field: "unknown field",
  missing_field: "missing field",
  unknown_name: (/** @type {keyof typeof NAMES} */ key) => `${NAMES[key]}: ${UPDATE}`,
  no_list: (low, high) => `expected a list of ${low} to ${high} entries`,
  same_id: "two entries have the same id",
  no_integer: (low, high) => `expected a whole number from ${low} to ${high}`,
  no_ratio: "expected a ratio of two whole numbers",
  no_flag: "expected true or false",
  no_text: (most) => `expected a text of 1 to ${most} characters`,
  unsafe_text: "the text holds a character which cannot be shown safely",
  no_id: "expected an id of a-z, 0-9, - and _",
  no_digest: "expected sha256: and 64 hex digits",
  no_hex32: "expected 32 lower-case hex digits",
  no_hex64: "expected 64 lower-case hex digits",
  no_language: "expected a language tag such as en",
  no_key: "expected a public key in base64url",
  no_time: "a time is written YYYY-MM-DDTHH:MM:SSZ, in UTC",
  no_survey: `expected a document of type frankly.survey/2: ${UPDATE}`,
  prior_rows: (rows) => `expected ${rows} rows, or one row if the answer is the secret`,
  prior_columns_differ: "every row of every table must have as many columns as the first",
  empty_stratum: "a stratum without counts has no prior: add counts, or merge strata",
  counts_too_large: "the counts of all strata must sum to less than 2^53",
  tables_of_strata: (strata) => `expected one table, or one for each of the ${strata} strata`,
  no_item_choice: "expected one of the item's choices",
  item_beside_prior: "with an instructed item no promise may rest on a prior: who passes and who fails would need a prior of their own",
  item_beside_anchor: "an instructed item and an anchor both tell who answers at random: keep one",
  arms_sum: (sum) => `the chances of the arms must sum to ${sum}`,
  empty_arm: "an arm needs a block or a public question",
  in_no_arm: "every block and every public question must be in some arm",
  open_levels: "two infinite levels promise nothing",
  open_level: "only alip may leave a level out",
  no_secret: "this is not one of the prior's secrets",
  no_role: "expected one of no_answer, not_applicable",
  no_score: 'expected a number such as "2.5", as text, with at most 6 decimals',
  no_ask: "expected drawn, or no such field",
  no_figure: "expected mean of scores, distribution, or contrast with a number for each choice, and no box",
  anchor_of_all: "a question with an anchor is asked of everybody, and all its choices are answers",
  anchor_counts: "expected a count for each choice, not all 0",
  no_repeated: "expected an earlier question with the same choices",
  only_roles: "expected a choice or a box that is an answer",
  not_all: (name) => `expected ${name} in every choice without a role, or in none`,
  order_of_ranges: "expected ranges in increasing order",
  box_choices: "a box has the plain choices no and yes",
  box_id: (of) => `expected an id that begins with ${of}-`,
  public_plain: "a public question has plain choices only",
  no_earlier: "expected choices of an earlier question",
  no_skipped: "a question with a rule needs a choice or a box of the role not_applicable",
  boxes_apart: "boxes of one question must be adjacent, under an id of their own",
  boxes_differ: "boxes of one question have one text and one rule",
  design_prior: (answers) => `expected ${answers} positive counts`,
  ceiling_of_another: "the stated ceiling is not that of the mechanism",
  invite_key: "invites have no key",
  source_rules: "expected a rule for each source",
  source_question: "the sources are no public question's choices",
  source_choices: "expected a rule for each choice of the question",
  order_of_times: "times must satisfy issued ≤ opens < closes ≤ expires",
  too_long_valid: "a document is valid for at most 400 days",
  release_every: "expected one of day, hour",
  release_step: "expected 2 to min_reports",
  predecessor: "the first version, and only the first, has no predecessor",
  // Mechanisms.
  no_table: "expected a table of whole numbers",
  rows: (most) => `a mechanism has 2 to ${most} rows`,
  columns: (most) => `a mechanism has 1 to ${most} columns`,
  row_width: (width) => `every row needs ${width} columns`,
  no_weights: "weights are whole numbers, zero or more",
  row_sum: (bits) => `the row does not sum to 2^${bits}`,
  never_sent: "a report that is never sent must not have a column",
  keep_is_flip: "keep and flip must differ: otherwise the report reveals nothing",
  factors: "a product has 2 to 16 factors",
  factor_answers: (most) => `the factors' answers multiply to more than ${most}`,
  fields: (names) => `expected an object with ${names.join(", ")}`,
  many_choices: (most) => `a form has at most ${most} choices`,
  part_questions: (most) => `a part names 1 to ${most} different questions, in order`,
  no_such: (what) => `there is no such ${what}`,
  part_answers: (most) => `a part has 2 to ${most} joint answers`,
  parts_differ: "the parts must differ",
  question_in_no_part: "every question must be in some part",
  part_in_no_pool: "every part must be in some pool",
  chances_sum: (bits) => `the chances of the components must sum to 2^${bits}`,
  no_set_weight: "expected [set as hex digits, weight]",
  no_set: (digits) => `a set of these answers is ${digits} lower-case hex digits, no higher bit set`,
  many_cells: (most) => `the tables of a form have at most ${most} cells`,
  set_count: (most) => `a cover has 2 to ${most} sets`,
  same_sets: "the sets of a cover must differ",
  empty_set: "a set of a cover contains some answers but not all",
  set_weights: "the weights of a cover must sum to less than 2^53",
  not_uniform: "every answer must be covered equally often",
  pool_parts: "a pool names different parts, in order",
  pool_answers: "the parts of a pool have as many answers as its cover",
  question_once: "a component names a question once",
  choices_of_questions: "the mechanism must have the choices of the questions, in their order",
  form_ldp: about("of the agreement kind only ldp can be promised"),
  rows_of_answers: (answers) => `${answers} joint answers need a mechanism with as many answers`,
  // Promises.
  level_below_1: about("a level is a ratio p/q ≥ 1"),
  no_bound: about("the probability of the sensitive secret is bounded by p/q ≤ 1"),
  one_secret: about("the prior needs a row for each of two or more secrets"),
  prior_columns: (notion, answers) => `${notion}: every row of the prior needs ${answers} columns`,
  no_mass: about("a secret without mass cannot be protected"),
  large_product: (notion, most) => `${notion}: a product of more than ${most} reports can be verified for ldp and dp only`,
  too_long: about("verifying this takes too long at its size"),
  all_too_long: "verifying all that is promised would take too long",
  long_search: "this prior takes too long to verify",
  many_counts: "priors and forms hold too many counts, all tables written out",
  not_kept: (notion, n, d, p, q) => `${notion}: ${d ? `${n}/${d} is needed` : "no finite ratio can be promised"}, ${p}/${q} is promised`,
  // Acceptance and policy.
  link_form: "a survey link looks like https://host/s/ID#sha256=…: copy all of it",
  link_user: "an address must not contain a user name, which could tell devices apart",
  own_machine: "a survey from another host must not collect reports on this machine",
  other_host: (host, own) => `reports would go to ${host}, not to the link's ${own}; an app can allow this in its policy's collectHosts`,
  not_https: "use https://; http:// is accepted only for this machine, such as 127.0.0.1 or localhost",
  insecure_page: "this page is not a secure context, so browsers give it no cryptography: serve it over https:// (or from localhost)",
  other_survey: "this is another survey's document",
  other_digest: (pinned, sent) => `the link pins ${pinned}, the server sent ${sent}`,
  window: outside("the survey is open"),
  no_decimal: 'write a finite, plain decimal string such as "0.5"',
  no_level: "choose a level from 0.01 to 64 nats",
  no_chance: "a chance is at least 0 and less than 1",
  ceiling: (level) => "this block's promise rests on a prior, the link does not pin the survey, and its ceiling of " +
    `${lnUp(level)} nats is more than this app allows`,
  unlogged: "this app requires a witnessed log, and none lists this survey",
  unpinned: "use the link that ends in #sha256=…, so that everyone gets the same survey",
  no_survey_ids: "expected a list of survey ids",
  no_survey_id: "a survey id is 32 lower-case hex digits, as in its link after /s/",
  cap: (_cause, secret, ...given) => `${tells(secret, given)}: lower the survey's levels, or raise the app's cap`,
  composition: (cause, secret, ...given) => `${tells(secret, given)}: ${inWords([cause])}, or give them lower ceilings`,
  prior_without_strata: "with public questions, a promise that rests on a prior is used only if it has counts for every stratum",
  one_prior_counts: "only one block's promise that rests on a prior is used; ask these questions in one block",
  final: (...given) => `it costs ${nats(given)}: nothing else could ever be answered here afterwards; ` +
    "publish it with lower ceilings, or let the app name this survey in finalSurveys",
  budget: (...given) => `with earlier answers it would cost ${nats(given)}`,
  budget_final: "it uses up the whole budget, so it must be answered before any other survey, but another one has been answered",
  budget_delta: (delta, allowed) => `earlier answers have used up a δ of ${chanceUp(delta)}, but this app allows ${allowed}`,
  // Answering.
  no_texts: "expected texts by name",
  text_part: (parts) => `expected one of ${parts.join(", ")}`,
  text_name: "texts/en.json has no text of this name",
  text_forms: "expected a text, or an object with texts for plural forms, one of them `other`",
  text_braces: (names) => `the names in braces can be: ${[...new Set(names)].map((name) => name.slice(1, -1)).sort().join(", ") || "none"}`,
  no_respondent: "a respondent's key is a non-blank string; without one, the answer is that of this install's owner",
  no_answers: choices("answers are given as an object of question id to choice id"),
  no_answer: choices("this question has no answer"),
  answer_no_text: choices("a choice is given by its id, a string"),
  no_choice: choices("the answer is not one of the choices"),
  answer_no_number: choices("a choice is given by its id, a string, or as a whole number"),
  below_ranges: choices("the number is below the smallest range"),
  no_box_list: choices("ticked boxes are given as a list of their ids"),
  no_box: choices("a ticked box is not one of the question's boxes"),
  boxes_twice: choices("the boxes are given both as a list and one by one"),
  box_beside_others: choices("a box that excludes the others is ticked together with another"),
  no_question: choices("there is an answer to a question that is not in the survey"),
  randomness: "the operating system gave no random bits; nothing was sent, try again later",
  already_answered: "this survey has already been answered here; the first answer remains valid",
  survey_closed: (closes, now) => `the survey closed at ${time(closes)}, this device's clock says ${time(now)}`,
  store: "this browser stores nothing for this page (private window, blocked storage, or a full disk); nothing was sent",
  // Delivery.
  network: "the server could not be reached; it will be tried again",
  log_renamed: "the survey's log has a new name; the last head under its old name is kept as evidence",
  no_part: "a part of the SDK could not be loaded; reload the page when the network is back",
  not_found: "the server does not know this survey; check that the link is complete",
  status: (status) => `the server answered with status ${status}; try again later`,
  not_json: `${STRANGER}: check the network's log-in page`,
  redirect: "the server answered with a redirect, which is not followed",
  limit: "the server's response was too large or too slow",
  sealed: "sealed here; it will be sent",
  first_refused: "the server refused the first answer permanently",
  first_stored: "the server has stored the first answer",
  other_tab: "another tab of this page is sending; the answer will be sent later",
  left_alone: "the server asked this device to wait; the answer will be sent later",
  scheduled: "sealed; it is sent at a random moment, so that the sending time reveals nothing",
  switched_off: "this client is switched off and has no survey; check client.enabled",
  disabled: "the app has switched this off: nothing was drawn, stored or sent",
  erased: "there is nothing left to send",
  stored: "the server has stored the randomised answer",
  stranger: `${STRANGER}; the answer will be sent again until the survey closes`,
  not_now: "the server does not take this report at the moment; it will be sent again until the survey closes",
  busy: "the server cannot take the answer right now; it will be sent again",
  report_late: "the survey has closed; the randomised answer was erased",
  report_refused: "the server refused the report permanently",
};

/** Return the text for a key and its values. */
export function inWords(/** @type {import("./errors.js").Said} */ [key, ...values]) {
  const text = Object.hasOwn(TEXTS, key) ? TEXTS[key] : key; // modules that are loaded later pass the text instead of a key
  return typeof text === "function" ? text(...values) : text;
}

/** @typedef {{detail: string, said?: import("./errors.js").Said, field?: string | null}} Told an error, a receipt or an event */

/** Return the message of an error, a receipt or an event, for pages with core.js, where they contain only keys. */
export function describe(/** @type {Told} */ { detail, said = [detail], field = null }) {
  const words = inWords(said); // receipts and events contain only the key
  return field ? `${field}: ${words}` : words;
}
