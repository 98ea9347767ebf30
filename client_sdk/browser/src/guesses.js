// SPDX-License-Identifier: Apache-2.0
/** The chance of a right guess from a report, for explanations only; no decision depends on it. */

import { rational } from "./rational.js";

/** @typedef {import("./mechanisms.js").Mechanism} Mechanism */
/** @typedef {import("./rational.js").Rational} Rational */

const columnsOf = (/** @type {number[][]} */ weights) => weights[0].map((_, y) => weights.map((row) => row[y]));

/** Return true if every report has a single possible truth. @returns {boolean} */
export function isUnchanged(/** @type {Mechanism} */ m) {
  if (m.kind === "agreement") return false;
  if (m.kind === "dense") return columnsOf(m.weights).every((column) => column.filter(Boolean).length === 1);
  if (m.kind === "product") return m.factors.every(isUnchanged);
  if (m.kind === "unary") return Math.min(m.keep, m.flip) === 0 && Math.max(m.keep, m.flip) === 2 ** m.bits;
  return (m.size === 1 && m.inside === 2 ** m.bits) || (m.size === m.answers - 1 && m.inside === 0);
}

/** Return the chance that the best guess from a report is right, if all answers are equally likely. @returns {Rational} */
export function guess(/** @type {import("./mechanisms.js").Numbered} */ m) {
  const D = 1n << BigInt(m.bits), a = BigInt(m.answers);
  if (m.kind === "dense") return rational(columnsOf(m.weights).reduce((all, column) => all + BigInt(Math.max(...column)), 0n), D * a);
  if (m.kind === "product") return m.factors.map(guess).reduce((all, [n, d]) => rational(all[0] * n, all[1] * d));
  if (m.kind === "subset") {
    const best = (/** @type {bigint} */ n, /** @type {number} */ d) => rational(n, BigInt(d) * D), inside = BigInt(m.inside);
    const [p, q] = [best(inside, m.size), best(D - inside, m.answers - m.size)];
    return p[0] * q[1] > q[0] * p[1] ? p : q;
  }
  const k = BigInt(Math.max(m.keep, m.flip)), f = BigInt(Math.min(m.keep, m.flip));
  const [on, off] = m.keep > m.flip ? [k, f] : [D - f, D - k];
  // The sums for the nonempty sets and for the empty set have the denominator f·a·D^a (without f if that is 0).
  const some = off ? on * (D ** a - (D - off) ** a) : on * a * D ** (a - 1n);
  const none = (D - on) * (D - off) ** (a - 1n);
  return rational(some + none * (off || 1n), (off || 1n) * a * D ** a);
}
