// SPDX-License-Identifier: Apache-2.0
/** Sentences about the promises of one block alone and of the whole report, the same as in frankly_protocol/explanation/promised.py. */

import { explained } from "./explained_kinds.js";
import { isStratified } from "./survey.js";
import { ONE, compare, rational } from "./rational.js";
import { chanceUp, lnUp, percentUp, times } from "./shown.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./survey.js").Block} Block
 * @typedef {import("./survey.js").Promised} Promised
 * @typedef {import("./ledger.js").ReportLevel} ReportLevel
 * @typedef {import("./ledger.js").SecretLevel} SecretLevel
 */

/** @typedef {import("./words.js").Texts} Texts */

/** Notions on averages that have a sentence of their own name; another notion on secrets is explained by odds. */
const AVERAGES = ["lip", "srlip"];

/** Return true if a ceiling is infinite, or above 2^24 and explained as infinite. */
const isEndless = (/** @type {Rational | null} */ ratio) => compare(ratio, rational(1 << 24)) > 0;

const ratioOf = (/** @type {[number, number] | null | undefined} */ level, /** @type {Texts} */ t) => t.figure(times(level ? rational(...level) : null));

/** Return a block's own promises, and the bound that holds even if a published table is wrong. @returns {string[]} */
export function blockPromises(/** @type {Block} */ { mechanism, promises, restsOnPrior, ceiling }, /** @type {boolean} */ hasStrata, /** @type {Texts} */ t) {
  const say = (/** @type {string} */ name, values = {}) => t.say("promises", name, values), { promise } = explained(mechanism);
  if (promise) return [say(promise, { ratio: ratioOf(promises[0].claim.level, t) })];
  const said = promises.map((promise) => blockPromise(promise, hasStrata, t));
  if (!restsOnPrior) return said;
  if (!isEndless(ceiling)) return [...said, say("ceiling", { ratio: t.figure(times(ceiling)) })];
  return [...said, say(promises.some(({ claim }) => claim.delta) ? "no_ceiling" : "no_ceiling_open")];
}

/** Return the bounds of the whole report: for each secret, then for the answers themselves. @returns {string[]} */
export function wholeReport(/** @type {Survey} */ { blocks, strata }, /** @type {ReportLevel} */ level, /** @type {Texts} */ t) {
  const say = (/** @type {string} */ name, values = {}) => t.say("whole", name, values), hasStrata = strata.length > 0;
  const subject = hasStrata ? "subject_given" : "subject";
  const bounded = blocks.flatMap(({ promises }) => promises.filter(({ claim }) => claim.sensitive !== undefined)); // as in level.posteriors
  return [
    ...(hasStrata ? [say("given")] : []),
    ...[...level.secrets].flatMap(([name, secret]) => [say(subject, { bound: secretWords(name, secret, level, t) }), ...(hasStrata ? [publicAnswers(name, secret, t)] : [])]),
    ...level.posteriors.flatMap(({ secret, sensitive, bound }, i) => (compare(bound, ONE) < 0
      ? [say(subject, { bound: say("if_true", { bound: say("sure", { chance: t.figure(percentUp(bound)), secret, value: bounded[i].prior?.secrets[sensitive] }) }) })]
      : [])),
    answersWords(subject, level, t),
  ];
}

/** Return a sentence with the ledger's charge, each block's part of it, and the remaining budget. */
export function cost(/** @type {ReportLevel} */ { lines, cost: { odds, delta }, ceiling }, /** @type {import("../frankly.d.ts").Budget | undefined} */ budget, /** @type {Texts} */ t) {
  const nats = (/** @type {Rational | null} */ level) => t.figure(lnUp(level));
  const blocks = lines.map((line) => t.say("whole", `by_${line.countedBy}`, { block: line.block, nats: nats(line.odds) })).join(", ");
  return [
    odds ? t.say("whole", "cost", { nats: nats(odds), blocks }) : t.say("whole", "cost_all", { blocks }),
    ...(delta[0] ? [t.say("whole", "cost_delta", { delta: t.figure(chanceUp(delta)), nats: nats(ceiling) })] : []),
    ...(budget ? [budgetWords(budget, t)] : []),
  ].join(" ");
}

/** Return one sentence on the budget for the respondent. */
export function budgetWords(/** @type {import("../frankly.d.ts").Budget} */ budget, /** @type {Texts} */ t) {
  const figures = Object.fromEntries(["cost", "delta", "cap", "left"].map((name) => [name, t.figure(/** @type {any} */ (budget)[name])]));
  const say = (/** @type {string} */ name, values = {}) => t.say("budget", name, { ...figures, after: t.figure(budget.leftAfter), ...values });
  const left = say("left");
  if (budget.isAnswered) return say("answered", { left });
  if (!budget.canAnswer) return say("not_enough", { left });
  if (budget.isFinal) return say("final");
  return say(budget.delta === "0" ? "costs" : "costs_delta", { left });
}

function blockPromise(/** @type {Promised} */ promise, /** @type {boolean} */ hasStrata, /** @type {Texts} */ t) {
  const { claim, secret, source } = promise, say = (/** @type {string} */ name, values = {}) => t.say("promises", name, values);
  if (secret === null) return say("alone", { bound: aboutAnswers(claim, t) });
  const bound = about(promise, t);
  return say(isStratified(promise) ? "by_table_within" : hasStrata ? "by_table_beside" : "by_table", { bound, source });
}

/** Return a sentence part with the bound of a promise about the answers themselves. */
function aboutAnswers(/** @type {Promised["claim"]} */ { level, delta, levels }, /** @type {Texts} */ t) {
  if (levels && level) return betweenPairs(levels, level, t);
  const ratio = ratioOf(level, t);
  return delta ? t.say("promises", "answer_delta", { ratio, chance: t.figure(percentUp(delta)) }) : t.say("promises", "answer", { ratio });
}

function betweenPairs(/** @type {([number, number] | null)[][]} */ levels, /** @type {[number, number]} */ [p, q], /** @type {Texts} */ t) {
  const pairs = levels.flatMap((row, x) => row.filter((_, z) => z !== x));
  const limits = pairs.flatMap((one) => (one ? [rational(BigInt(p) * BigInt(one[0]), BigInt(q) * BigInt(one[1]))] : [])).sort(compare);
  const [least, most] = [limits[0], limits[limits.length - 1]].map((limit) => t.figure(times(limit))), open = pairs.length - limits.length;
  const bound = t.say("promises", least === most ? "pairs" : "pairs_range", { least, most });
  return open ? t.say("promises", "pairs_open", { bound, open, all: pairs.length }) : bound;
}

function about(/** @type {Promised} */ { claim, secret, prior }, /** @type {Texts} */ t) {
  const { notion, level, low_level: low, sensitive } = claim; // only ALIP has a level below, or null for none
  if (prior && level && sensitive !== undefined) return t.say("promises", "sure", { chance: t.figure(percentUp(level)), secret, value: prior.secrets[sensitive] });
  const sided = !low ? "pml" : !level ? "pmc" : "alip", name = low !== undefined ? sided : AVERAGES.includes(notion) ? notion : "odds";
  return t.say("promises", name, { secret, up: ratioOf(level, t), down: ratioOf(low, t) });
}

function secretWords(/** @type {string} */ name, /** @type {SecretLevel} */ secret, /** @type {ReportLevel} */ { answers, lines }, /** @type {Texts} */ t) {
  const { level, odds, counted } = secret;
  if (!odds || !level) return t.say("whole", "unlimited", { secret: name });
  // If no promise is used, these are the same objects as for the answers; comparing their values would take most of the
  // time.
  const isPriorFree = level === answers.level && odds === answers.odds;
  const bound = t.say("whole", isPriorFree ? "always" : "if_true", { bound: boundOf(name, secret, t) });
  return counted !== null && lines.length > 1 ? t.say("whole", "counted", { bound, block: counted }) : bound;
}

/** Return the bound of a secret, in its own unit and in odds. */
function boundOf(/** @type {string} */ name, /** @type {SecretLevel} */ { level, odds, unit, delta }, /** @type {Texts} */ t) {
  const isLift = unit === "lift", key = delta[0] ? (isLift ? "delta_lift" : "delta") : isLift ? "lift" : "odds";
  return t.say("whole", key, { secret: name, lift: t.figure(times(level)), odds: t.figure(times(odds)), chance: t.figure(percentUp(delta)) });
}

function publicAnswers(/** @type {string} */ name, /** @type {SecretLevel} */ { strataLift: lift, strataOdds: odds }, /** @type {Texts} */ t) {
  if (!lift || !odds) return t.say("whole", "public_open", { secret: name });
  return t.say("whole", "public", { secret: name, lift: t.figure(times(lift)), odds: t.figure(times(odds)) });
}

function answersWords(/** @type {string} */ subject, /** @type {ReportLevel} */ { answers: { odds, delta }, lines }, /** @type {Texts} */ t) {
  if (!odds) return t.say("whole", "answers_open", { blocks: lines.flatMap((line) => (line.odds ? [] : [`“${line.block}”`])).join(", ") });
  const bound = t.say("whole", delta[0] ? "answers_delta" : "answers", { odds: t.figure(times(odds)), chance: t.figure(percentUp(delta)) });
  return t.say("whole", subject, { bound: t.say("whole", "always", { bound }) });
}
