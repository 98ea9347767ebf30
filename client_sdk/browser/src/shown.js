// SPDX-License-Identifier: Apache-2.0
/** Formatting of exact numbers; bounds are rounded up, so that none is understated. */

import { ceilDiv, compare, expLower, rational } from "./rational.js";

/** @typedef {import("./rational.js").Rational} Rational */

/** Return ln(level) in nats with four decimals, rounded up; "inf" for null. */
export function lnUp(/** @type {Rational | null} */ level) {
  if (!level) return "inf";
  let nats = BigInt(Math.max(0, Math.ceil((log(level[0]) - log(level[1])) * 1e4 - 2)));
  if (nats > 640_000n) nats += 4n;
  else while (compare(expLower(rational(nats, 10_000)), level) < 0) nats++;
  return `${nats / 10_000n}.${String(nats % 10_000n).padStart(4, "0")}`;
}

/** rounding: for display only; `lnUp` corrects it upwards by exact comparison. */
function log(/** @type {bigint} */ n) {
  const extra = Math.max(0, n.toString(16).length - 15);
  return Math.log(Number(n >> BigInt(4 * extra))) + extra * Math.log(16);
}

/** Return a share in per cent, to the nearest tenth, half to even; 0.0% and 100.0% are always exact. */
export function percent(/** @type {Rational} */ [n, d]) {
  let tenths = (n * 1000n) / d;
  const twice = 2n * (n * 1000n - tenths * d);
  if (twice > d || (twice === d && tenths & 1n)) tenths++;
  if (n > 0n && n < d) tenths = tenths < 1n ? 1n : tenths > 999n ? 999n : tenths;
  return `${tenths / 10n}.${tenths % 10n}%`;
}

/** Return a bound on a share in per cent, rounded up to a thousandth. */
export function percentUp(/** @type {[number | bigint, number | bigint]} */ [n, d]) {
  const up = ceilDiv(BigInt(n) * 100_000n, BigInt(d));
  return `${up / 1000n}.${String(up % 1000n).padStart(3, "0")}%`;
}

/** Return a ratio with two decimals, rounded up; "∞" for null. */
export function times(/** @type {Rational | null} */ ratio) {
  if (!ratio) return "∞";
  const up = ceilDiv(ratio[0] * 100n, ratio[1]);
  return `${up / 100n}.${String(up % 100n).padStart(2, "0")}`;
}

/** Return a chance with at most three significant digits, rounded up. */
export function chanceUp(/** @type {Rational} */ [n, d]) {
  if (!n) return "0";
  let places = 0n;
  while (ceilDiv(n * 10n ** places, d) < 100n) places++;
  const digits = String(ceilDiv(n * 10n ** places, d)).padStart(Number(places) + 1, "0"), point = digits.length - Number(places);
  return [digits.slice(0, point), digits.slice(point).replace(/0+$/, "")].filter(Boolean).join(".");
}
