// SPDX-License-Identifier: Apache-2.0
/** A survey that has been read, and reports on it: all that a page needs besides the verifier. */

import { bytesOf } from "./canonical.js";
import { ClockError } from "./errors.js";

/**
 * @typedef {import("./audit.js").Claim} Claim
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {Record<string, string>} Words a text per language
 * @typedef {{id: string, label: Words, role?: string, from?: number, score?: string}} Choice spec 3.5, as are a question's `box`, `ask_if`, `wanted` and `anchor`
 * @typedef {{of: string, text: Words, label: Words, role?: string}} Box
 * @typedef {{question: string, choices: string[]}} Rule
 * @typedef {{figure: string, numbers?: string[]}} Wanted
 * @typedef {{counts?: number[], source?: string, repeats?: string}} Anchor what is known beforehand of all people's answers, a count for each choice; or the earlier question that is repeated
 * @typedef {{id: string, text: Words, choices: Choice[], box?: Box, ask_if?: Rule, wanted?: Wanted, anchor?: Anchor}} Question
 * @typedef {Question & {answer: string}} Instructed an item that asks for one given choice; a report tells only whether it was made
 * @typedef {number[][]} Table counts [s][x]; if the answer itself is the secret, a single row or a diagonal table
 * @typedef {{secret: string, secrets: string[], source: string, tables: Table[]}} Prior one table, or one for each stratum
 * @typedef {{claim: Claim, secret: string | null, source: string | null, prior: Prior | null}} Promised the claim's joint is the sum over all strata
 * @typedef {{id: string, questions: Question[], parameters: {kind: string}, mechanism: import("./mechanisms.js").Mechanism, promises: Promised[],
 *   ceiling: Rational | null, ask?: "drawn", restsOnPrior: boolean}} Block ask: the device asks only what it has drawn, see plans.js
 * @typedef {{survey: string, version: number, opens: number, closes: number, expires: number, languages: string[],
 *   title: Words, consent: Words | null, collectUrl: string, strata: Question[], instructed?: Instructed, arms?: Arms, arm?: string, blocks: Block[],
 *   token: Token | null, min_reports: number, digest: string, parts: string[], longest?: number}} Survey
 *   arm: the arm of which it is the view, see arms.js; parts: those that it needs, see parts.js; longest: bytes of a report, if there are arms
 * @typedef {{kind: string, key?: string | null, question?: string, rules?: Record<string, Token>}} Token with sources: the question of which they are choices, and the rule of each
 * @typedef {{id: string, arms: {id: string, chance: number, strata: string[], blocks: string[]}[]}} Arms
 */

export const CLOCK_SKEW = 600_000;
export const LONGEST_VALID = 400 * 86_400_000;

/** Return the questions whose answers are randomised, in the document's order. */
export const questionsOf = (/** @type {{blocks: Block[]}} */ { blocks }) => blocks.flatMap((entry) => entry.questions);

/** Return the questions that are asked in the clear: the public ones and the instructed item. @returns {Question[]} */
export const openQuestions = (/** @type {Pick<Survey, "strata" | "instructed">} */ { strata, instructed }) => (instructed ? [...strata, instructed] : strata);

/** Return true if the device draws what it asks before it asks anything. */
export const isDrawn = (/** @type {Pick<Survey, "arms" | "blocks">} */ { arms, blocks }) => Boolean(arms) || blocks.some(({ ask }) => ask);

/** Return what a report has beside the public answers: the arm that was drawn. @returns {Record<string, string>} */
export const drawnArm = (/** @type {Pick<Survey, "arms" | "arm">} */ { arms, arm }) => (arms && arm ? { [arms.id]: arm } : {});

/** Return the truth as the mechanism reads it, from the positions of the choices: usually the row of the joint answer, with the last question fastest. */
export const truthAt = (/** @type {Block} */ { mechanism, questions }, /** @type {number[]} */ positions) =>
  (mechanism.truthOf?.(positions) ?? positions.reduce((row, x, i) => row * questions[i].choices.length + x, 0));

/** Throw ClockError unless the survey is open at `now`, with a tolerance of 10 minutes (step 6). */
export function requireWindow(/** @type {Survey} */ { opens, closes, expires }, /** @type {number} */ now) {
  if (now < opens - CLOCK_SKEW || now > Math.min(closes, expires) + CLOCK_SKEW)
    throw new ClockError(now < opens ? "opens" : "closes", "window", opens, closes, now);
}

/** Return true if the claim is made within every stratum, given the public answers. */
export const isStratified = (/** @type {Promised} */ { prior: known }) => known !== null && known.tables.length > 1;

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
  if (survey.longest) return survey.longest;
  const longest = (/** @type {Question} */ { choices }) => "0".repeat(Math.max(...choices.map(({ id }) => id.length)));
  return reportBytes({
    doc: survey.digest,
    id: "0".repeat(32),
    y: survey.blocks.map((entry) => entry.mechanism.longest),
    strata: { ...Object.fromEntries(openQuestions(survey).map((q) => [q.id, q === survey.instructed ? "passed" : longest(q)])), ...drawnArm(survey) },
    token: survey.token ? "0".repeat(1400) : null,
  }).length;
}
