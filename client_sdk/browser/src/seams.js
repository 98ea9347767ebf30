// SPDX-License-Identifier: Apache-2.0
/**
 * Seams at which tests replace network, time and randomness. No named option sets them: only testing.js uses this key,
 * and the hosted page, whose first requests replace those of the SDK.
 */

/**
 * @typedef {{fetch?: typeof fetch, now?: () => number, timer?: () => number, sleep?: (ms: number) => Promise<void>,
 *   randomBits?: import("./mechanisms.js").RandomBits}} Seams
 */

export const SEAMS = Symbol("frankly seams");
