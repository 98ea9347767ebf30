// SPDX-License-Identifier: Apache-2.0
/** Sentences about the promises of one block alone and of the whole report, the same as in frankly_sdk/_promised.py. */

import { isEndless } from "./audit.js";
import { isStratified } from "./documents.js";
import { ONE, compare, rational } from "./rational.js";
import { chanceUp, lnUp, percentUp, times } from "./shown.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./documents.js").Survey} Survey
 * @typedef {import("./documents.js").Block} Block
 * @typedef {import("./documents.js").Promised} Promised
 * @typedef {import("./ledger.js").ReportLevel} ReportLevel
 * @typedef {import("./ledger.js").SecretLevel} SecretLevel
 */

const IF_TRUE = "as long as the published tables about it are true";
const COUNTED = { ceiling: "ceiling", dp: "(ε, δ) promise" };
const levelOf = (/** @type {[number, number] | null | undefined} */ level) => times(level ? rational(...level) : null);
const withDelta = (/** @type {string} */ odds, /** @type {string} */ noun, /** @type {[number | bigint, number | bigint]} */ delta, average = "") =>
  `no result is more than ×${odds} as likely with one ${noun} as with another${average}, plus a chance of at most ${percentUp(delta)}`;

/** Return a block's own promises, and the bound that holds even if a published table is wrong. @returns {string[]} */
export function blockPromises(/** @type {Block} */ { mechanism, promises, restsOnPrior, ceiling }, /** @type {boolean} */ hasStrata) {
  if (mechanism.kind === "agreement")
    return [`From this alone, odds between any two ways of answering all of these questions change by at most ×${levelOf(promises[0].claim.level)}, whatever else is known.`];
  const said = promises.map((promise) => blockPromise(promise, hasStrata));
  if (!restsOnPrior) return said;
  if (!isEndless(ceiling)) return [...said, `Even if that is not true, this alone changes odds by at most ×${times(ceiling)}, which also protects the answer itself.`];
  const answer = promises.some(({ claim }) => claim.delta) ? "" : " The answer itself is not protected.";
  return [...said, `If that is not true, this alone may change odds by more than ×16 million: some symbols all but rule out some answers.${answer}`];
}

/** Return the bounds of the whole report: for each secret, then for the answers themselves. @returns {string[]} */
export function wholeReport(/** @type {Survey} */ { blocks, strata }, /** @type {ReportLevel} */ level) {
  const hasStrata = strata.length > 0;
  const everything = hasStrata ? "Given your public answers, from everything else in the report" : "From the whole report";
  const bounded = blocks.flatMap(({ promises }) => promises.filter(({ claim }) => claim.sensitive !== undefined)); // as in level.posteriors
  return [
    ...(hasStrata ? ["“Given your public answers” means: compared with what is believed about people who have the same public answers."] : []),
    ...[...level.secrets].flatMap(([name, secret]) => [`${everything}, ${secretWords(name, secret, level)}`, ...(hasStrata ? [publicAnswers(name, secret)] : [])]),
    ...level.posteriors.flatMap(({ secret, sensitive, bound }, i) => (compare(bound, ONE) < 0
      ? [`${everything}, nobody can be surer than ${percentUp(bound)} that your “${secret}” is “${bounded[i].prior?.secrets[sensitive]}”, ${IF_TRUE}.`]
      : [])),
    answersWords(everything, level),
  ];
}

/** Return a sentence with the ledger's charge, each block's part of it, and the remaining budget. */
export function cost(/** @type {ReportLevel} */ { lines, cost: { odds, delta }, ceiling }, /** @type {import("../frankly.d.ts").Budget | undefined} */ budget) {
  const counted = lines.map((line) => `${line.block} by its ${COUNTED[line.countedBy]}, ${lnUp(line.odds)}`).join(", ");
  const words = odds
    ? `Answering everything costs ${lnUp(odds)} nats of what this app allows you in all (${counted}).`
    : `Answering uses up for good everything that this app allows you (${counted}).`;
  const chance = ` It also uses up ${chanceUp(delta)} of the δ that the app allows; if less than that is left, it costs ${lnUp(ceiling)} nats.`;
  return `${words}${delta[0] ? chance : ""}${budget ? ` ${budget}` : ""}`;
}

function blockPromise(/** @type {Promised} */ promise, /** @type {boolean} */ hasStrata) {
  const { claim: { level, delta, levels }, secret, source } = promise, by = levelOf(level);
  if (levels && level) return `From this alone, ${betweenPairs(levels, level)}, whatever else is known.`;
  if (secret === null)
    return `From this alone, ${delta ? withDelta(by, "answer to it", delta) : `odds between two answers to it change by at most ×${by}`}, whatever else is known.`;
  const isWithin = isStratified(promise), isVoid = hasStrata && !isWithin;
  const alone = isWithin ? ", given your public answers" : isVoid ? ", for readers who ignore your public answers" : "";
  const beside = isVoid ? " Against readers who know your public answers, this promise does not hold; only the other limits do." : "";
  return `From this alone${alone}, ${about(promise, by)}, as long as this published table is true: ${source}.${beside}`;
}

function betweenPairs(/** @type {([number, number] | null)[][]} */ levels, /** @type {[number, number]} */ [p, q]) {
  const pairs = levels.flatMap((row, x) => row.filter((_, z) => z !== x));
  const limits = pairs.flatMap((one) => (one ? [rational(BigInt(p) * BigInt(one[0]), BigInt(q) * BigInt(one[1]))] : [])).sort(compare);
  const least = times(limits[0]), most = times(limits[limits.length - 1]), open = pairs.length - limits.length;
  const between = least === most ? "" : `×${least} to `, beside = open ? ` (no limit is promised for ${open} of ${pairs.length} pairs)` : "";
  return `odds of one answer to it against another grow by at most ${between}×${most}${between && ", depending on the two"}${beside}`;
}

function about(/** @type {Promised} */ { claim, secret, prior }, /** @type {string} */ by) {
  const { notion, level, low_level: low, sensitive } = claim;
  if (prior && level && sensitive !== undefined) return `nobody can be surer than ${percentUp(level)} that your “${secret}” is “${prior.secrets[sensitive]}”`;
  if (notion === "alip") {
    const grows = `grows by at most ×${by}`, shrinks = `shrinks by at most ÷${levelOf(low)}`;
    return `belief about your “${secret}” ${!low ? `${grows}, but may shrink without limit` : !level ? `${shrinks}, but may grow without limit` : `${grows} and ${shrinks}`}`;
  }
  if (notion === "lip" || notion === "srlip")
    return `belief about your “${secret}” changes by at most ×${by}${notion === "srlip" ? ", even for those who know some of your answers to it" : ""}`;
  return `odds about your “${secret}” change by at most ×${by}`;
}

function secretWords(/** @type {string} */ name, /** @type {SecretLevel} */ secret, /** @type {ReportLevel} */ { answers, lines }) {
  const { level, odds, counted } = secret;
  if (!odds || !level) return `no limit is promised on what can be learnt about your “${name}”.`;
  // If no promise is used, these are the same objects as for the answers; comparing values would take most of the time.
  const provided = level === answers.level && odds === answers.odds ? "whatever else is known" : IF_TRUE;
  const which = counted !== null && lines.length > 1 ? ` (for the odds, “${counted}” is counted by its promise and every other block by its limit)` : "";
  return `${boundOf(name, secret)}, ${provided}${which}.`;
}

/** Return the bound of a secret, in its own unit and in odds. */
function boundOf(/** @type {string} */ name, /** @type {SecretLevel} */ { level, odds, unit, delta }) {
  const isLift = unit === "lift", lift = times(level), by = times(odds);
  if (delta[0]) return withDelta(by, `value of your “${name}”`, delta, isLift ? ` or more than ×${lift} as likely as on average` : "");
  if (!isLift) return `odds about your “${name}” change by at most ×${by}`;
  return `belief about your “${name}” changes by at most ×${lift}, and odds between two of its values by at most ×${by}`;
}

function publicAnswers(/** @type {string} */ name, /** @type {SecretLevel} */ { strataLift: lift, strataOdds: odds }) {
  if (!lift || !odds) return `What your public answers alone reveal about your “${name}” has no known limit.`;
  return `Your public answers alone can change belief about your “${name}” by up to ×${times(lift)} and odds by up to ×${times(odds)}, ${IF_TRUE}.`;
}

function answersWords(/** @type {string} */ everything, /** @type {ReportLevel} */ { answers: { odds, delta }, lines }) {
  if (!odds)
    return `The answers themselves are not all protected: no limit holds for ${lines.flatMap((line) => (line.odds ? [] : [`“${line.block}”`])).join(", ")}.`;
  const by = times(odds);
  return `${everything}, ${delta[0] ? withDelta(by, "set of answers", delta) : `odds about your answers themselves change by at most ×${by}`}, whatever else is known.`;
}
