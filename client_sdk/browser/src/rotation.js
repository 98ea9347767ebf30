// SPDX-License-Identifier: Apache-2.0
/** Keys that have been rotated more than once since they were seen: loaded when that is so (docs/protocol.md §3.1). */

import { MAX_BYTES, parse, unbase64 } from "./canonical.js";
import { DocumentRejected, KeyChainError } from "./errors.js";
import { requireStep, versionOf } from "./keys.js";

/** @typedef {(read: typeof readChain) => Promise<Uint8Array[]>} Chain gives the envelopes that a server keeps */

const MAX_STEPS = 256;

/** The keys document just before `version`, if an unbroken chain leads there from those known. */
export async function walkTo(
  /** @type {number} */ version, /** @type {Uint8Array} */ known, /** @type {Chain} */ chain, /** @type {import("./dsse.js").Verify} */ verify,
) {
  const first = versionOf(known) + 1;
  if (version - first >= MAX_STEPS) throw new KeyChainError("version", `more than ${MAX_STEPS} rotations have been missed: update the app`); // (K5)
  const served = new Map((await chain(readChain)).map((data) => [versionOf(data), data]));
  for (let number = first; number < version; number++)
    if (!served.has(number)) throw new KeyChainError("chain", `version ${number} of the keys is missing from the chain`);
  for (let number = first; number < version; number++) {
    const next = /** @type {Uint8Array} */ (served.get(number));
    await requireStep(known, next, verify);
    known = next;
  }
  return known;
}

/** The envelopes of a chain as served. @returns {Uint8Array[]} */
export function readChain(/** @type {Uint8Array} */ data) {
  const body = parse(data, MAX_BYTES);
  const chain = body && Object.keys(body).length === 1 && body.chain;
  if (!Array.isArray(chain)) throw new DocumentRejected("envelope", null, "a chain of keys is an object with exactly the field chain");
  if (chain.length > MAX_STEPS + 1) throw new KeyChainError("chain", `a chain has at most ${MAX_STEPS} steps: update the app`);
  return chain.map((entry) => {
    const envelope = unbase64(entry);
    if (!envelope) throw new DocumentRejected("envelope", "chain", "no_base64");
    return envelope;
  });
}
