// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/testing`. */

/** Seams that a test may replace: network, wall clock and timer in milliseconds, waits, and the source of random bits. */
export interface Seams {
  fetch?: typeof fetch;
  now?: () => number;
  timer?: () => number;
  sleep?: (ms: number) => Promise<void>;
  randomBits?: (bits: number) => number;
}

/** Return options with seams, for `Client.open` or `element.options`. */
export function withSeams<Options extends object>(options: Options, seams: Seams): Options;
