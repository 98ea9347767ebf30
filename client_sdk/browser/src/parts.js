// SPDX-License-Identifier: Apache-2.0
/** Parts of the verifier that few surveys need, loaded before a document is read. Without its part a document cannot be read, so it cannot pass. */

import { part } from "./errors.js";

/**
 * Pattern of the canonical JSON that needs a part, and how to load it. Quotation marks in texts are escaped there, so that
 * no text hides a key; and a part that is loaded in vain changes no verdict.
 * @type {Record<string, [RegExp, () => Promise<any>]>}
 */
const PARTS = {
  kinds: [/"kind":"(?:unary|subset|product)"/, () => import("./kinds.js")],
  agreement: [/"kind":"agreement"/, () => import("./agreement.js")],
  rare: [/"notion":"(?!(?:secret-)?ldp"|a?lip")/, () => import("./rare.js")],
  plans: [/"(?:ask|arms)":/, () => import("./plans.js")],
  arms: [/"arms":/, () => import("./arms.js")],
  sources: [/"kind":"sources"/, () => import("./sources.js")],
  ways: [/"(?:anchor|ask_if|box|from|role|score|wanted)":/, () => import("./ways.js")],
};

/** Parts that are loaded, by name. @type {Record<string, any>} */
export const parts = {};

/** Return the names of the parts that a document needs. */
export const partsOf = (/** @type {string} */ text) => Object.keys(PARTS).filter((name) => PARTS[name][0].test(text));

/** Load parts by name; throws NetworkError if one does not load. */
export const loadParts = (/** @type {string[]} */ names) => Promise.all(names.map(async (name) => (parts[name] ??= await part(PARTS[name][1]))));
