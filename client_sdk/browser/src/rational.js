// SPDX-License-Identifier: Apache-2.0
/** Exact ratios of whole numbers, and provable bounds of e^r. No float decides anything here. */

import { InvalidInput } from "./errors.js";

/** @typedef {[bigint, bigint]} Rational in lowest terms, the second above 0 */

export const MAX_INT = 2n ** 53n - 1n;
const abs = (/** @type {bigint} */ n) => (n < 0n ? -n : n);

export function gcd(/** @type {bigint} */ a, /** @type {bigint} */ b) {
  while (b) [a, b] = [b, a % b];
  return abs(a);
}

/** n/d in lowest terms. @returns {Rational} */
export function rational(/** @type {bigint | number} */ n, /** @type {bigint | number} */ d = 1n) {
  const [a, b] = [BigInt(n), BigInt(d)];
  const common = gcd(a, b);
  return [a / common, b / common];
}

/** Negative, zero or positive as a is less than, equal to or greater than b; null is infinite. */
export function compare(/** @type {Rational | null} */ a, /** @type {Rational | null} */ b) {
  if (!a || !b) return Number(!a) - Number(!b);
  const difference = a[0] * b[1] - b[0] * a[1];
  return difference < 0n ? -1 : Number(difference > 0n);
}

/** The product; null if any factor is infinite. @returns {Rational | null} */
export function product(/** @type {(Rational | null)[]} */ factors) {
  return factors.reduce((/** @type {Rational | null} */ all, next) => all && next && rational(all[0] * next[0], all[1] * next[1]), rational(1));
}

export const sum = (/** @type {bigint[]} */ values) => values.reduce((a, b) => a + b, 0n);

/** n/d rounded up. */
export const ceilDiv = (/** @type {bigint} */ n, /** @type {bigint} */ d) => -(-n / d) + BigInt(n > 0n && n % d !== 0n);

/** A number of nats from 0.01 to 64, read exactly from a plain decimal string. @returns {Rational} */
export function parseNats(/** @type {unknown} */ value, /** @type {string} */ field) {
  const found = typeof value === "string" ? /^(\d{1,6})(?:\.(\d{1,30}))?$/.exec(value) : null;
  if (typeof value === "string" && /^[+-]?(nan|inf|infinity)$/i.test(value))
    throw new InvalidInput('write a finite decimal such as "0.5"', "eps_not_finite", field);
  if (!found) throw new InvalidInput('write a plain decimal string such as "0.5"', "eps_format", field);
  const [, whole, part = ""] = found;
  const number = rational(BigInt(whole + part), 10n ** BigInt(part.length));
  if (compare(number, rational(1, 100)) < 0 || compare(number, rational(64)) > 0)
    throw new InvalidInput("choose a level from 0.01 to 64 nats", "eps_out_of_range", field);
  return number;
}

const ONE = 1n << 192n; // 128 bits, and 64 more for the errors of rounding and squaring

/** A rational at most e^r and within a relative 2^-128 of it, for r in [0, 64]: the Python package's own bound. @returns {Rational} */
export function expLower(/** @type {Rational} */ [n, d]) {
  const halvings = BigInt(n / d ? (n / d).toString(2).length : 0);
  let total = ONE, term = ONE;
  for (let i = 1n; term > 1n; i++) total += term = (term * n) / ((d << halvings) * i);
  for (let i = 0n; i < halvings; i++) total = (total * total) / ONE;
  return rational(total, ONE);
}

/** ln(level) in nats with four decimals, never shown smaller than it is; null is "inf". */
export function lnUp(/** @type {Rational | null} */ level) {
  if (!level) return "inf";
  let nats = BigInt(Math.max(0, Math.ceil((log(level[0]) - log(level[1])) * 1e4 - 2)));
  if (nats > 640_000n) nats += 4n;
  else while (compare(expLower(rational(nats, 10_000)), level) < 0) nats++;
  return `${nats / 10_000n}.${String(nats % 10_000n).padStart(4, "0")}`;
}

/** rounding: for reading only; `lnUp` corrects it upwards by exact comparison. */
function log(/** @type {bigint} */ n) {
  const extra = Math.max(0, n.toString(16).length - 15);
  return Math.log(Number(n >> BigInt(4 * extra))) + extra * Math.log(16);
}
