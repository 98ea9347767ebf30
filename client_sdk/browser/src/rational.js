// SPDX-License-Identifier: Apache-2.0
/** Exact ratios of whole numbers, and a lower bound of e^r. No decision depends on a float. */

import { InvalidInput } from "./errors.js";

/** @typedef {[bigint, bigint]} Rational with a positive denominator; sums and products are not reduced, because that is slow for long numbers */

export const MAX_INT = 2n ** 53n - 1n;
const abs = (/** @type {bigint} */ n) => (n < 0n ? -n : n);

export function gcd(/** @type {bigint} */ a, /** @type {bigint} */ b) {
  while (b) [a, b] = [b, a % b];
  return abs(a);
}

/** Return n/d in lowest terms. @returns {Rational} */
export function rational(/** @type {bigint | number} */ n, /** @type {bigint | number} */ d = 1n) {
  const [a, b] = [BigInt(n), BigInt(d)];
  const common = gcd(a, b);
  return [a / common, b / common];
}

export const ZERO = rational(0);
export const ONE = rational(1);

/** Return a negative number, zero or a positive number if ratio a is less than, equal to or greater than b; null is infinite. */
export function compare(/** @type {Rational | null} */ a, /** @type {Rational | null} */ b) {
  if (!a || !b) return Number(!a) - Number(!b);
  const difference = a[0] * b[1] - b[0] * a[1];
  return difference < 0n ? -1 : Number(difference > 0n);
}

/** Return the product; null if a factor is infinite. @returns {Rational | null} */
export const product = (/** @type {(Rational | null)[]} */ factors) => productWith(factors)();

/** Return a function (position, ratio) that computes the product with that factor replaced; null if another factor is infinite. */
export function productWith(/** @type {(Rational | null)[]} */ factors) {
  const infinite = factors.flatMap((factor, i) => (factor ? [] : [i]));
  const all = factors.reduce((/** @type {Rational} */ [n, d], factor) => (factor ? [n * factor[0], d * factor[1]] : [n, d]), ONE);
  return (i = -1, instead = ONE) => {
    if (infinite.some((j) => j !== i)) return null;
    const [n, d] = factors[i] ?? ONE;
    return /** @type {Rational} */ ([all[0] / n * instead[0], all[1] / d * instead[1]]);
  };
}

/** Comparator for sorting: returns a negative number, zero or a positive number if a is less than, equal to or greater than b. */
export const order = (/** @type {bigint} */ a, /** @type {bigint} */ b) => (a < b ? -1 : Number(a > b));

export const sum = (/** @type {bigint[]} */ values) => values.reduce((a, b) => a + b, 0n);

/** Return n/d rounded up. */
export const ceilDiv = (/** @type {bigint} */ n, /** @type {bigint} */ d) => -(-n / d) + BigInt(n > 0n && n % d !== 0n);

/** Return the sum. @returns {Rational} */
export const plus = (/** @type {Rational} */ a, /** @type {Rational} */ b) => [a[0] * b[1] + b[0] * a[1], a[1] * b[1]];

/** Return a number from `low` to `high` hundredths, read exactly from a plain decimal string. @returns {Rational} */
export function parseDecimal(/** @type {any} */ value, /** @type {string} */ field, low = 1, high = 6400) {
  const isText = typeof value === "string", found = isText && /^(\d{1,6})(?:\.(\d{1,30}))?$/.exec(value);
  const outside = () => new InvalidInput("eps_out_of_range", field, low ? "no_level" : "no_chance");
  if (!found) {
    // The float only selects one of two error messages; acceptance does not depend on it.
    if (isText && /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) && (100 * +value < low || 100 * +value > high)) throw outside();
    throw new InvalidInput(isText && /^[+-]?(nan|inf|infinity)$/i.test(value) ? "eps_not_finite" : "eps_format", field, "no_decimal");
  }
  const [, whole, part = ""] = found;
  const number = rational(BigInt(whole + part), 10n ** BigInt(part.length));
  if (compare(number, rational(low, 100)) < 0 || compare(number, rational(high, 100)) > 0) throw outside();
  return number;
}

/** Return a chance, at least 0 and less than 1. @returns {Rational} */
export function parseChance(/** @type {unknown} */ value, /** @type {string} */ field) {
  const chance = parseDecimal(value, field, 0, 100);
  if (!compare(chance, ONE)) throw new InvalidInput("eps_out_of_range", field, "no_chance");
  return chance;
}

const UNIT = 1n << 192n; // 128 bits, and 64 guard bits for the errors of rounding and squaring

/** Return a rational ≤ e^r within a relative error of 2^-128, for r in [0, 64]; the same bound as in the Python package. @returns {Rational} */
export function expLower(/** @type {Rational} */ [n, d]) {
  const halvings = BigInt(n / d ? (n / d).toString(2).length : 0);
  let total = UNIT, term = UNIT;
  for (let i = 1n; term > 1n; i++) total += term = (term * n) / ((d << halvings) * i);
  for (let i = 0n; i < halvings; i++) total = (total * total) / UNIT;
  return rational(total, UNIT);
}
