// SPDX-License-Identifier: Apache-2.0
/**
 * Arms, versions of a survey of which a device draws one (docs/spec/3-documents.md, 3.10). parts.js loads this module if a document
 * needs it. The view of an arm is a survey like any other, with the arm's blocks and public questions.
 */

import { ONE, compare } from "./rational.js";
import { identifier, integer, list, object, reject, requireDistinct } from "./schema.js";
import { reportLength } from "./survey.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./survey.js").Question} Question
 * @typedef {import("./ledger.js").ReportLevel} ReportLevel
 * @typedef {import("./ledger.js").SecretLevel} SecretLevel
 */

const BITS = 16, CHANCES = 2 ** BITS;
const idOf = (/** @type {{id: string}} */ { id }) => id;

/** Reader of the field `arms`; `requireArms` checks what depends on the rest of the document. */
export const read = object({
  id: identifier,
  arms: list(2, 8, object({ id: identifier, chance: integer(1, CHANCES - 1), strata: list(0, 8, identifier), blocks: list(0, 100, identifier) })),
});

/** Throw unless the chances are complete, the arms differ and name what the document has, and nothing is in no arm. */
export function requireArms(/** @type {Pick<Survey, "blocks" | "strata"> & {arms: import("./survey.js").Arms}} */ { arms: { arms }, blocks, strata }) {
  if (arms.reduce((all, { chance }) => all + chance, 0) !== CHANCES) throw reject("arms.arms", "arms_sum", CHANCES);
  requireDistinct(arms.map(idOf), "arms.arms");
  const known = { strata: strata.map(idOf), blocks: blocks.map(idOf) }, names = /** @type {const} */ (["strata", "blocks"]);
  for (const [i, arm] of arms.entries()) {
    for (const name of names) {
      const path = `arms.arms[${i}].${name}`;
      if (!arm[name].every((id) => known[name].includes(id))) throw reject(path, "no_such", name === "blocks" ? "block" : "public question");
      requireDistinct(arm[name], path);
    }
    if (!arm.strata.length && !arm.blocks.length) throw reject(`arms.arms[${i}].blocks`, "empty_arm");
  }
  for (const name of names)
    if (!known[name].every((id) => arms.some((arm) => arm[name].includes(id)))) throw reject("arms.arms", "in_no_arm");
  requireDistinct(known.strata, "strata");
}

/** Return the view of every arm. @template {Pick<Survey, "blocks" | "strata" | "arms">} T @returns {(T & {arm: string})[]} */
export const viewsOf = (/** @type {T} */ survey) => /** @type {import("./survey.js").Arms} */ (survey.arms).arms.map(({ id, strata, blocks }) => ({
  ...survey, arm: id, strata: survey.strata.filter((one) => strata.includes(one.id)),
  blocks: blocks.map((name) => /** @type {import("./survey.js").Block} */ (survey.blocks.find((one) => one.id === name))),
}));

/** Return true if the first arm that has a block has the same public questions as this view: the tables of a prior are of one set of strata. */
export function isLikeEarlier(/** @type {Survey} */ { arms, strata }, /** @type {string} */ block) {
  const first = /** @type {import("./survey.js").Arms} */ (arms).arms.find(({ blocks }) => blocks.includes(block));
  return first?.strata.length === strata.length && strata.every(({ id }) => first.strata.includes(id));
}

/** Return the view of one arm. @returns {Survey} */
export const viewOf = (/** @type {Survey} */ survey, /** @type {string} */ arm) => /** @type {Survey} */ (viewsOf(survey).find((view) => view.arm === arm));

/** Return the length in bytes of every report: the longest of any arm, so that it does not tell which was drawn. */
export const longestOf = (/** @type {Survey} */ survey) => Math.max(...viewsOf(survey).map((view) => reportLength(view)));

/** Draw an arm with its chance. @returns {string} */
export function draw(/** @type {Survey} */ survey, /** @type {import("./mechanisms.js").RandomBits} */ bits) {
  const { arms } = /** @type {import("./survey.js").Arms} */ (survey.arms), number = bits(BITS);
  let i = 0, limit = 0;
  for (const { chance } of arms) i += Number(number >= (limit += chance)); // all are compared, so the time does not depend on the draw
  return arms[i].id;
}

/** Return the answers without those to questions of other arms alone, which are not read; `all` : the questions of the whole document, `own` : those of the view. */
export function ownAnswers(/** @type {any} */ given, /** @type {Question[]} */ all, /** @type {Question[]} */ own) {
  if (given === null || typeof given !== "object") return given;
  const names = (/** @type {Question[]} */ questions) => new Set(questions.flatMap(({ id, box }) => (box ? [id, box.of] : [id])));
  const mine = names(own), others = names(all);
  return Object.fromEntries(Object.keys(given).filter((name) => mine.has(name) || !others.has(name)).map((name) => [name, given[name]]));
}

const largest = (/** @type {(Rational | null)[]} */ bounds) => bounds.reduce((a, b) => (compare(b, a) > 0 ? b : a));

/**
 * Return the level of a document: figure by figure the largest of its arms, with the level of each; `secrets` : those that any arm
 * promises something of, `of` : the level of a view, also about these.
 */
export function levelOf(/** @type {Survey} */ survey, /** @type {string[]} */ secrets, /** @type {(view: Survey, secrets: string[]) => ReportLevel} */ of) {
  const views = viewsOf(survey), levels = views.map((view) => of(view, secrets));
  const most = (/** @type {(level: ReportLevel) => Rational | null} */ figure) => largest(levels.map(figure));
  const odds = most(({ cost }) => cost.odds), delta = /** @type {Rational} */ (most(({ cost }) => cost.delta)); // never infinite
  const posteriors = new Map(levels.flatMap((level) => level.posteriors).map((one) => [nameOf(one), one]));
  /** @type {Map<string, import("./ledger.js").BlockCharge>} */
  const lines = new Map();
  for (const line of levels.flatMap((level) => level.lines)) if (!lines.has(line.block)) lines.set(line.block, line);
  return {
    secrets: new Map(secrets.map((name) => [name, secretOf(levels.map((level) => /** @type {SecretLevel} */ (level.secrets.get(name))))])),
    cost: { odds, delta }, lines: [...lines.values()], answers: { level: odds, odds, delta }, ceiling: most(({ ceiling }) => ceiling),
    posteriors: [...posteriors].map(([name, one]) => ({ ...one, bound: largest(levels.map((level) => level.posteriors.find((own) => nameOf(own) === name)?.bound ?? ONE)) })), // an arm without the promise bounds nothing
    arms: Object.fromEntries(views.map(({ arm, blocks }, i) => [arm, { ...levels[i], secrets: new Map([...levels[i].secrets].filter(([name]) => promises(blocks, name))) }])),
  };
}

const nameOf = (/** @type {import("./ledger.js").Posterior} */ { block, secret, sensitive }) => `${block} ${secret} ${sensitive}`;
const promises = (/** @type {import("./survey.js").Block[]} */ blocks, /** @type {string} */ name) => blocks.some((block) => block.promises.some(({ secret }) => secret === name));

/** @returns {SecretLevel} */
function secretOf(/** @type {SecretLevel[]} */ levels) {
  const most = (/** @type {"level" | "odds" | "delta" | "strataLift" | "strataOdds"} */ name) => largest(levels.map((one) => one[name]));
  const odds = most("odds");
  return {
    level: most("level"), odds, unit: levels.some(({ unit }) => unit === "lift") ? "lift" : "odds", delta: /** @type {Rational} */ (most("delta")),
    counted: /** @type {SecretLevel} */ (levels.find((one) => !compare(one.odds, odds))).counted, strataLift: most("strataLift"), strataOdds: most("strataOdds"),
  };
}
