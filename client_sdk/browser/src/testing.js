// SPDX-License-Identifier: Apache-2.0
/** Testing kit: options for a client or an element whose network, time or randomness a test replaces. */

import { SEAMS } from "./seams.js";

/**
 * Return options with seams, for `Client.open` or `element.options`. Apps have no reason to load this module.
 * fetch : replaces the network. now : the wall clock, in milliseconds. timer : milliseconds, never backwards.
 * sleep : waits between two attempts. randomBits : the source of the random bits.
 * @template {object} Options @param {Options} options @param {import("./seams.js").Seams} seams @returns {Options}
 */
export const withSeams = (options, seams) => ({ ...options, [SEAMS]: seams });
