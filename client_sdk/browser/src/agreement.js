// SPDX-License-Identifier: Apache-2.0
/**
 * The agreement kind: many questions under one level (docs/spec/1-mechanisms.md, 1.10). parts.js loads this module
 * only if a document needs it, to keep other pages small. Names, limits and the order of checks are those of
 * frankly_protocol/mechanisms/agreement/.
 */

import { DocumentRejected } from "./errors.js";
import { MAX_REPORTS, drawBelow } from "./mechanisms.js";
import { rational, sum } from "./rational.js";
import { integer } from "./schema.js";

/** @typedef {import("./mechanisms.js").RandomBits} RandomBits */
/** @typedef {import("./rational.js").Rational} Rational */
/**
 * Sets of a part's answers that cover every answer equally often; `inside` is the total weight of the sets with a given answer.
 * @typedef {{answers: number, size?: number, sets: number, listed: () => {masks: bigint[], weights: bigint[]}, inside: bigint, outside: bigint}} Cover
 * @typedef {{parts: number[], pick: number, score: number, cover: Cover}} Pool
 * @typedef {{chance: number, threshold: number, pools: Pool[], tables: () => {slots: Pool[], tails: bigint[][], totals: bigint[]}}} Component
 */

const MAX_QUESTIONS = 100, MAX_CHOICES = 2000, MAX_PARTS = 400, MAX_GROUPED = 4, MAX_COMPONENTS = 256, MAX_ANSWERS = 256, MAX_SCORE = 8, MAX_COVER = 2 ** 18, MAX_CELLS = 2 ** 20;

const fault = (/** @type {string} */ field, /** @type {import("./errors.js").Said} */ ...said) => new DocumentRejected("weights", field, ...said);
const whole = (/** @type {any} */ value, /** @type {string} */ path, /** @type {number} */ low, high = Number.MAX_SAFE_INTEGER) => integer(low, high, "weights")(value, path);
const product = (/** @type {number[]} */ values) => values.reduce((all, n) => all * n, 1);
const total = (/** @type {number[]} */ values) => values.reduce((all, n) => all + n, 0);
const isRising = (/** @type {number[]} */ values) => values.every((n, i) => !i || n > values[i - 1]);

/**
 * Return a function that computes a value at its first call, because a document may describe far more tables than its
 * reader needs.
 * @type {<T>(make: () => T) => () => T}
 */
const later = (make) => {
  /** @type {any} */
  let made;
  return () => (made ??= make());
};

function list(/** @type {any} */ value, /** @type {string} */ path, /** @type {number} */ most) {
  if (!Array.isArray(value) || !value.length || value.length > most) throw fault(path, "no_list", 1, most);
  return value;
}

const wholes = (/** @type {any} */ value, /** @type {string} */ path, /** @type {number} */ most, low = 0, high = Number.MAX_SAFE_INTEGER) =>
  list(value, path, most).map((n, i) => whole(n, `${path}[${i}]`, low, high));

function requireFields(/** @type {any} */ value, /** @type {string} */ path, /** @type {string[]} */ names) {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  if (!isObject || Object.keys(value).sort().join() !== [...names].sort().join()) throw fault(path, "fields", names);
  return value;
}

/** Read the parameters of a block of this kind; errors name the field. */
export function read(/** @type {any} */ { bits, agree, disagree, choices: givenChoices, parts: givenParts, components: given }, /** @type {string} */ field) {
  const at = (/** @type {string} */ name) => `${field}.${name}`;
  const choices = wholes(givenChoices, at("choices"), MAX_QUESTIONS, 2, 64);
  const parts = list(givenParts, at("parts"), MAX_PARTS).map((part, i) => wholes(part, at(`parts[${i}]`), MAX_GROUPED));
  const answersOf = (/** @type {number[]} */ part) => product(part.map((q) => choices[q]));
  /** @type {Component[]} */
  const components = list(given, at("components"), MAX_COMPONENTS).map((entry, i) => readComponent(entry, at(`components[${i}]`), choices, parts));
  whole(bits, at("bits"), 4, 48);
  whole(disagree, at("disagree"), 1);
  whole(agree, at("agree"), disagree);
  if (total(choices) > MAX_CHOICES) throw fault(at("choices"), "many_choices", MAX_CHOICES);
  for (const [i, part] of parts.entries()) {
    const where = at(`parts[${i}]`);
    if (!isRising(part)) throw fault(where, "part_questions", MAX_GROUPED);
    if (part[part.length - 1] >= choices.length) throw fault(where, "no_such", "question");
    if (answersOf(part) > MAX_ANSWERS) throw fault(where, "part_answers", MAX_ANSWERS);
  }
  if (new Set(parts.map(String)).size < parts.length) throw fault(at("parts"), "parts_differ");
  if (new Set(parts.flat()).size < choices.length) throw fault(at("parts"), "question_in_no_part");
  for (const [i, component] of components.entries()) requireComponent(component, at(`components[${i}]`), bits, parts, answersOf);
  if (new Set(components.flatMap(({ pools }) => pools.flatMap((pool) => pool.parts))).size < parts.length) throw fault(at("parts"), "part_in_no_pool");
  if (total(components.map(({ chance }) => chance)) !== 2 ** bits) throw fault(at("components"), "chances_sum", bits);
  const cells = total(components.map((component) => cellsOf(component, choices, parts)));
  if (cells > MAX_CELLS) throw fault(at("components"), "many_cells", MAX_CELLS);
  const limits = components.reduce((/** @type {number[]} */ all, { chance }) => [...all, (all[all.length - 1] ?? 0) + chance], []);
  const level = rational(agree, disagree), [p, q] = [BigInt(agree), BigInt(disagree)];
  return {
    kind: /** @type {const} */ ("agreement"), bits, agree, disagree, choices, cells, answers: product(choices), reports: 0n, level, shape: "choices",
    work: 1e5, // its level follows from two numbers
    extremes: () => /** @type {[bigint, bigint, boolean][]} */ ([[...level, false]]),
    refusal: (/** @type {string} */ notion) => /** @type {[string] | undefined} */ (notion === "ldp" ? undefined : ["form_ldp"]),
    counts(/** @type {number[]} */ sizes, /** @type {string} */ path) {
      if (String(sizes) !== String(choices)) throw fault(`${path}.choices`, "choices_of_questions");
      return total(sizes);
    },
    truthOf: (/** @type {number[]} */ positions) => positions,
    longest: components.map(longest).reduce((best, symbol) => (String(symbol).length > String(best).length ? symbol : best)),
    parts,
    plan: (/** @type {RandomBits} */ draw) => plan({ bits, components, limits }, draw),
    sample: (/** @type {number[]} */ truth, /** @type {RandomBits} */ draw, drawn = plan({ bits, components, limits }, draw)) =>
      answer({ p, q, choices, parts, components }, truth, drawn, draw),
    /** The smallest and the largest number of integers in a symbol. */
    get numbers() {
      const sizes = components.map(({ pools }) => 1 + 2 * total(pools.map(({ pick }) => pick)));
      return [Math.min(...sizes), Math.max(...sizes)];
    },
    /** The slots of all components, or of one; see `slotsOf`. */
    slots: (number = -1) => slotsOf(p, q, bits, choices, parts, number < 0 ? components : [components[number]]),
    guess: () => bestGuess(choices, slotsOf(p, q, bits, choices, parts, components)),
    questionsDrawn: () => questionsDrawn(parts, components),
  };
}

/** @returns {Component} */
function readComponent(/** @type {any} */ value, /** @type {string} */ where, /** @type {number[]} */ choices, /** @type {number[][]} */ parts) {
  const { chance, threshold, pools: given } = requireFields(value, where, ["chance", "threshold", "pools"]);
  const pools = list(given, `${where}.pools`, MAX_QUESTIONS).map((pool, j) => readPool(pool, `${where}.pools[${j}]`, choices, parts));
  whole(threshold, `${where}.threshold`, 1);
  return { chance, threshold, pools, tables: later(() => tablesOf(pools, threshold)) };
}

/** @returns {Pool} */
function readPool(/** @type {any} */ value, /** @type {string} */ where, /** @type {number[]} */ choices, /** @type {number[][]} */ parts) {
  const { parts: given, pick, score, cover } = requireFields(value, where, ["parts", "pick", "score", "cover"]);
  const numbers = wholes(given, `${where}.parts`, MAX_PARTS);
  const answers = product((parts[numbers[0]] ?? []).map((q) => choices[q] ?? 1));
  if (answers < 2 || answers > MAX_ANSWERS) throw fault(`${where}.parts`, "part_answers", MAX_ANSWERS);
  whole(pick, `${where}.pick`, 1, MAX_QUESTIONS);
  whole(score, `${where}.score`, 1, MAX_SCORE);
  return { parts: numbers, pick, score, cover: readCover(cover, answers, `${where}.cover`) };
}

/** @returns {Cover} */
function readCover(/** @type {any} */ value, /** @type {number} */ answers, /** @type {string} */ where) {
  if (Number.isInteger(value)) return setsOfSize(whole(value, where, 1, answers - 1), answers, where);
  const digits = Math.ceil(answers / 4), full = (1n << BigInt(answers)) - 1n;
  const entries = list(value, where, MAX_REPORTS).map((entry, i) => {
    const place = `${where}[${i}]`;
    if (!Array.isArray(entry) || entry.length !== 2) throw fault(place, "no_set_weight");
    const weight = whole(entry[1], place, 1), [hex] = entry;
    if (typeof hex !== "string" || hex.length !== digits || !/^[0-9a-f]+$/.test(hex) || BigInt(`0x${hex}`) > full) throw fault(place, "no_set", digits);
    return { hex, mask: BigInt(`0x${hex}`), weight };
  });
  if (entries.length < 2 || entries.length * answers > MAX_COVER) throw fault(where, "set_count", MAX_REPORTS);
  const masks = entries.map(({ mask }) => mask), weights = entries.map(({ weight }) => BigInt(weight)), all = sum(weights);
  if (new Set(masks).size < masks.length) throw fault(where, "same_sets");
  if (masks.some((mask) => !mask || mask === full)) throw fault(where, "empty_set");
  if (all > BigInt(Number.MAX_SAFE_INTEGER)) throw fault(where, "set_weights");
  // With unequal coverage the normalisation would depend on the truth, and the level would be exceeded. No sum exceeds that of all weights.
  const covered = new Array(4 * digits).fill(0);
  for (const { hex, weight } of entries)
    for (let i = 0; i < digits; i++) {
      const nibble = parseInt(hex[digits - 1 - i], 16);
      for (let k = 0; k < 4; k++) covered[4 * i + k] += ((nibble >> k) & 1) * weight;
    }
  if (covered.slice(0, answers).some((weight) => weight !== covered[0])) throw fault(where, "not_uniform");
  const inside = BigInt(covered[0]);
  return { answers, sets: entries.length, listed: () => ({ masks, weights }), inside, outside: all - inside };
}

/** Return all sets of a size, in the lexicographic order of their positions. @returns {Cover} */
function setsOfSize(/** @type {number} */ size, /** @type {number} */ answers, /** @type {string} */ where) {
  const sets = binomial(answers, size);
  if (sets > BigInt(MAX_REPORTS)) throw fault(where, "set_count", MAX_REPORTS);
  const listed = later(() => {
    /** @type {bigint[]} */
    const masks = [];
    const extend = (/** @type {bigint} */ mask, /** @type {number} */ from, /** @type {number} */ left) => {
      if (!left) return void masks.push(mask);
      for (let x = from; x <= answers - left; x++) extend(mask | (1n << BigInt(x)), x + 1, left - 1);
    };
    extend(0n, 0, size);
    return { masks, weights: masks.map(() => 1n) };
  });
  return { answers, size, sets: Number(sets), listed, inside: binomial(answers - 1, size - 1), outside: binomial(answers - 1, size) };
}

function binomial(/** @type {number} */ n, /** @type {number} */ k) {
  let all = 1n;
  for (let i = 0; i < k; i++) all = (all * BigInt(n - i)) / BigInt(i + 1);
  return all;
}

function requireComponent(
  /** @type {Component} */ { chance, threshold, pools }, /** @type {string} */ where, /** @type {number} */ bits,
  /** @type {number[][]} */ parts, /** @type {(part: number[]) => number} */ answersOf,
) {
  whole(chance, `${where}.chance`, 1, 2 ** bits);
  /** @type {number[]} */
  const questions = [];
  for (const [j, pool] of pools.entries()) {
    const place = `${where}.pools[${j}]`;
    if (!isRising(pool.parts)) throw fault(`${place}.parts`, "pool_parts");
    whole(pool.pick, `${place}.pick`, 1, pool.parts.length);
    if (pool.parts[pool.parts.length - 1] >= parts.length) throw fault(`${place}.parts`, "no_such", "part");
    // The parts of a pool that draws only one may share questions.
    const own = pool.parts.flatMap((part) => parts[part]);
    questions.push(...(pool.pick === 1 ? new Set(own) : own));
    if (pool.parts.some((part) => answersOf(parts[part]) !== pool.cover.answers)) throw fault(`${place}.parts`, "pool_answers");
  }
  // If a question were in two parts that are drawn together, their scores would be dependent.
  if (new Set(questions).size < questions.length) throw fault(`${where}.pools`, "question_once");
  whole(threshold, `${where}.threshold`, 1, total(pools.map(({ pick, score }) => pick * score)));
}

/** Return the number of cells of a component, which bounds the time to explain it: the cells of its covers, and eight times the cells of its score tables. */
function cellsOf(/** @type {Component} */ { threshold, pools }, /** @type {number[]} */ choices, /** @type {number[][]} */ parts) {
  return total(pools.map(({ parts: pool, pick, cover }) => {
    const joint = pool.map((i) => parts[i]).filter((part) => part.length > 1).flat();
    return 8 * pick * (threshold + 1) + cover.sets * (cover.answers + total(joint.map((q) => choices[q])));
  }));
}

/**
 * Return tails and totals: tails[j][s] is the total weight of those outcomes of slots j, j+1, … that raise s to the
 * threshold, totals[j] the total weight of all their outcomes.
 */
function tablesOf(/** @type {Pool[]} */ pools, /** @type {number} */ threshold) {
  const slots = pools.flatMap((pool) => /** @type {Pool[]} */ (new Array(pool.pick).fill(pool)));
  const tails = [Array.from({ length: threshold + 1 }, (_, s) => BigInt(s === threshold))], totals = [1n];
  for (const { cover: { inside, outside }, score } of [...slots].reverse()) {
    const next = tails[tails.length - 1];
    tails.push(next.map((reached, s) => inside * next[Math.min(s + score, threshold)] + outside * reached));
    totals.push(totals[totals.length - 1] * (inside + outside));
  }
  return { slots, tails: tails.reverse(), totals: totals.reverse() };
}

const meanWeight = (/** @type {bigint} */ p, /** @type {bigint} */ q, /** @type {Component} */ { tables }) => {
  const { tails: [[agreeing]], totals: [all] } = tables();
  return p * agreeing + q * (all - agreeing);
};

function longest(/** @type {Component} */ { pools }, /** @type {number} */ number) {
  return [number, ...pools.flatMap(({ parts, pick, cover }) => parts.slice(-pick).flatMap((part) => [part, cover.sets - 1]))];
}

const answerOf = (/** @type {number[]} */ part, /** @type {number[]} */ choices, /** @type {number[]} */ truth) => part.reduce((row, q) => row * choices[q] + truth[q], 0);

/** Return an exactly uniform number below n by rejection sampling, with the bit length of n − 1; at most 48 bits per draw, the highest first. */
function drawLarge(/** @type {bigint} */ n, /** @type {RandomBits} */ draw) {
  const bits = n > 1n ? (n - 1n).toString(2).length : 0;
  for (;;) {
    let u = 0n;
    for (let left = bits; left; left -= Math.min(left, 48)) {
      const some = Math.min(left, 48);
      u = (u << BigInt(some)) | BigInt(draw(some));
    }
    if (u < n) return u;
  }
}

/** Draw a plan, the component and the parts of a report; nothing else may be drawn before the answers are known. @returns {[number, number[]]} */
function plan(/** @type {{bits: number, components: Component[], limits: number[]}} */ { bits, components, limits }, /** @type {RandomBits} */ draw) {
  const first = draw(bits);
  let number = 0;
  for (const limit of limits) number += Number(first >= limit); // all are compared, so the time does not depend on the draw
  return [number, components[number].pools.flatMap(({ parts, pick }) => {
    const order = [...parts];
    for (let i = 0; i < pick && pick < order.length; i++) {
      const j = i + drawBelow(order.length - i, draw);
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order.slice(0, pick).sort((a, b) => a - b);
  })];
}

/** Draw the symbol of a plan for the positions of the true choices; the number of random bits does not depend on them, and only those of its parts are read. */
function answer(
  /** @type {{p: bigint, q: bigint, choices: number[], parts: number[][], components: Component[]}} */ form,
  /** @type {number[]} */ truth, /** @type {[number, number[]]} */ [number, drawn], /** @type {RandomBits} */ draw,
) {
  const { p, q, components } = form, component = components[number], { threshold } = component, { slots, tails, totals } = component.tables();
  const agreeing = tails[0][0], u = drawLarge(meanWeight(p, q, component), draw), agrees = u < p * agreeing;
  // All outcomes of the drawn weight are equally likely, and `rank` selects one of them.
  let rank = (u - [p * agreeing, 0n][Number(agrees)]) % [totals[0] - agreeing, agreeing][Number(agrees)], score = 0;
  const symbol = [number];
  for (const [j, { cover, score: own }] of slots.entries()) {
    const higher = Math.min(score + own, threshold), reached = tails[j + 1][higher], every = totals[j + 1];
    const held = [every - reached, reached][Number(agrees)], limit = cover.inside * held, holds = rank < limit;
    rank -= [limit, 0n][Number(holds)];
    const size = [cover.outside, cover.inside][Number(holds)], row = BigInt(answerOf(form.parts[drawn[j]], form.choices, truth));
    const place = rank % size;
    rank /= size;
    score = [score, higher][Number(holds)];
    symbol.push(drawn[j], setAt(cover, row, place, holds));
  }
  return symbol;
}

/**
 * Return the number of the set at cumulative weight `place`, among the sets with or without an answer. All sets are
 * visited, so the time does not depend on the answer.
 */
function setAt(/** @type {Cover} */ { listed }, /** @type {bigint} */ answer, /** @type {bigint} */ place, /** @type {boolean} */ holds) {
  const side = BigInt(holds), { masks, weights } = listed();
  let below = 0n, number = -1;
  for (let i = 0; i < masks.length; i++) {
    const counts = ((masks[i] >> answer) & 1n) === side;
    number = [number, i][Number(counts && below <= place)];
    below += weights[i] * BigInt(counts);
  }
  return number;
}

/** Return the smallest and the largest number of questions that a report is about. */
function questionsDrawn(/** @type {number[][]} */ parts, /** @type {Component[]} */ components) {
  const numbers = components.flatMap(({ pools }) => [1, -1].map((way) => pools.reduce((all, pool) => {
    const sizes = pool.parts.map((i) => parts[i].length).sort((a, b) => way * (a - b));
    return all + sizes.slice(0, pool.pick).reduce((some, n) => some + n, 0);
  }, 0)));
  return [Math.min(...numbers), Math.max(...numbers)];
}

/**
 * Slots that are drawn alike: the chance that a report has one of them for a given part; the weight of one set per unit of its own
 * weight, if it holds the true answer and if not, both over `mean`; and every question of every part, with its number of choices and
 * that of the joint answers to later questions of the part.
 * @typedef {{cover: Cover, pick: number, score: number, threshold: number, drawn: Rational, held: bigint, missed: bigint, mean: bigint, places: [number, number, number][]}} Slot
 */

/** Yield one slot of every pool, of which a report has `pick`, for every component; all numbers are the same for every truth. @returns {Generator<Slot>} */
function* slotsOf(
  /** @type {bigint} */ p, /** @type {bigint} */ q, /** @type {number} */ bits, /** @type {number[]} */ choices,
  /** @type {number[][]} */ parts, /** @type {Component[]} */ components,
) {
  for (const component of components) {
    const { pools, threshold, chance } = component, { tails, totals: [all] } = component.tables(), mean = meanWeight(p, q, component);
    let slot = 0, law = Array.from({ length: threshold + 1 }, (_, s) => BigInt(!s));
    for (const { parts: pool, pick, cover, score } of pools) {
      const { inside, outside } = cover, after = tails[slot + 1], rest = all / (inside + outside);
      // Weight of the outcomes of all other slots, if they reach the threshold with this slot's score, and without it.
      const [held, missed] = [score, 0].map((own) => {
        const reaching = sum(law.map((n, s) => n * after[Math.min(s + own, threshold)]));
        return p * reaching + q * (rest - reaching);
      });
      const places = pool.flatMap((part) => parts[part].map((question) => /** @type {[number, number, number]} */ ([
        question, choices[question], product(parts[part].filter((other) => other > question).map((other) => choices[other])),
      ])));
      yield { cover, pick, score, threshold, held, missed, mean, places, drawn: [BigInt(chance) * BigInt(pick), BigInt(pool.length) << BigInt(bits)] };
      slot += pick;
      for (let i = 0; i < pick; i++) {
        const moved = law.map((weight) => weight * outside);
        for (const [s, weight] of law.entries()) moved[Math.min(s + score, threshold)] += weight * inside;
        law = moved;
      }
    }
  }
}

/**
 * Return the chances of the best guess and of a blind guess, at the question for which the best guess is most often
 * right (of several such, the first of those with most choices), and the position of this question.
 * @returns {[Rational, Rational, number]}
 */
function bestGuess(/** @type {number[]} */ choices, /** @type {Iterable<Slot>} */ slots) {
  /** @type {Rational[]} */
  const chances = choices.map((n) => rational(1, n));
  for (const { cover, held, missed, mean, places, drawn: [some, every] } of slots) {
    // n/d is (α − β) of claim 3 in docs/maths/forms.md, times the chance that a part is drawn.
    const n = (held - missed) * (cover.inside + cover.outside) * some, d = mean * every;
    /** @type {Map<string, [bigint, bigint]>} */
    const gains = new Map();
    for (const [question, k, later] of places) {
      const place = `${k} ${later}`, [gain, of] = gains.get(place) ?? gainOf(cover, k, later), [a, b] = chances[question], more = rational(n * gain, d * of);
      gains.set(place, [gain, of]);
      chances[question] = rational(a * more[1] + more[0] * b, b * more[1]);
    }
  }
  /** @type {[Rational, Rational, number][]} */
  const pairs = chances.map((chance, i) => [chance, rational(1, choices[i]), i]);
  return pairs.reduce((best, pair) => (isEasier(pair, best) ? pair : best));
}

/** Return true if the first guess is right more often than the second, or equally often although its blind guess is right less often. */
const isEasier = (/** @type {[Rational, Rational, number]} */ [[n, d], [a, b]], /** @type {[Rational, Rational, number]} */ [[m, e], [f, g]]) => n * e > m * d || (n * e === m * d && a * g < f * b);

/** Return how much a set favours its best choice of a question with k choices over an average choice, as a ratio. @returns {[bigint, bigint]} */
function gainOf(/** @type {Cover} */ cover, /** @type {number} */ k, /** @type {number} */ after) {
  const { answers, inside, outside, listed } = cover, size = inside + outside, each = BigInt(answers / k);
  let best = size; // a part of one question: no set is empty
  if (k < answers) {
    const { masks, weights } = listed();
    best = sum(masks.map((mask, i) => {
      const held = new Array(k).fill(0), digits = mask.toString(2);
      for (let x = 0; x < digits.length; x++) held[Math.floor(x / after) % k] += Number(digits[digits.length - 1 - x]);
      return weights[i] * BigInt(Math.max(...held));
    }));
  }
  return [best - inside * each, size * each * BigInt(k)];
}

/** The kind of this module by its name. */
export const KINDS = { agreement: { params: ["bits", "agree", "disagree", "choices", "parts", "components"], read, questions: 100, counts: 2000 } };
