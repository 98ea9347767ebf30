// SPDX-License-Identifier: Apache-2.0
/** `frankly.keys/2`, the walk from the keys known to the newest, and the first root of a chain (docs/protocol.md §3.1). */

import { MAX_BYTES, digestOf, loads, parse, sameBytes, unbase64, unhex } from "./canonical.js";
import { CLOCK_SKEW, LONGEST_VALID } from "./documents.js";
import { KEYS_TYPE, readEnvelope, requireSigned } from "./dsse.js";
import { ClockError, DocumentRejected, Equivocation, KeyChainError, RollbackDetected, UnsupportedDocument, unless } from "./errors.js";
import { any, hex256, integer, list, moment, object, optional, reject, under } from "./schema.js";

/**
 * @typedef {import("./dsse.js").Role} Role
 * @typedef {import("./dsse.js").Verify} Verify
 * @typedef {{name: string, key: Uint8Array}} NamedKey
 * @typedef {{log: NamedKey, witnesses: NamedKey[], threshold: number}} LogRole
 * @typedef {{version: number, issued: number, expires: number, root: Role, publisher: Role, log: LogRole | null}} Keys
 */

const MAX_STEPS = 256;

/** Whether there are as many different ones as there are. */
const isDistinct = (/** @type {any[]} */ values) => new Set(values.map(String)).size === values.length;

const P = 2n ** 255n - 19n; // Ed25519's field
const SMALL_ORDER = [0n, 1n, 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n]; // y of every such point, or P - y

/** Whether anybody can sign for an Ed25519 key (a point of small order), or it is not written in its one canonical form. */
function isWeak(/** @type {string} */ key) {
  const y = BigInt.asUintN(255, BigInt(`0x${key.match(/../g)?.reverse().join("")}`)); // the bit above is the sign of x
  return y >= P || SMALL_ORDER.some((one) => y === one || y === P - one);
}

/** A public key, and what stands beside it. */
const KEY = {
  scheme: (/** @type {any} */ value, /** @type {string} */ path) => {
    if (value !== "ed25519") throw new UnsupportedDocument(path, "unknown_scheme");
  },
  public: (/** @type {any} */ value, /** @type {string} */ path) => {
    if (isWeak(hex256(value, path))) throw reject(path, "weak_key");
    return unhex(value);
  },
};
const NAMED = {
  name: (/** @type {any} */ value, /** @type {string} */ path) => {
    if (typeof value !== "string" || !/^[^\s\x85+\x00-\x1f\x7f]{1,255}$/u.test(value)) throw reject(path, "no_name");
    return value;
  },
  ...KEY,
};
const keyOf = (/** @type {{public: Uint8Array}} */ read) => read.public;
const rawKey = object(KEY);
const named = object(NAMED);

/** @type {import("./schema.js").Read<Role>} */
const role = (value, path) => {
  const { keys: read, threshold } = object({ keys: list(1, 32, rawKey), threshold: integer(1, 32) })(value, path);
  const keys = read.map(keyOf);
  if (!isDistinct(keys) || threshold > keys.length) throw reject("threshold", "threshold_of_keys");
  return { keys, threshold };
};

/** @type {import("./schema.js").Read<LogRole>} */
export const logRole = (value, path) => {
  const { witnesses: watching, threshold, ...own } = object({ ...NAMED, witnesses: list(0, 32, named), threshold: integer(0, 32) })(value, path);
  const all = [own, ...watching].map((one) => ({ name: one.name, key: one.public })), [log, ...witnesses] = all;
  if (!isDistinct(all.map((one) => one.key)) || !isDistinct(all.map((one) => one.name))) throw reject("log.witnesses", "log_of_its_own");
  if (threshold < Math.min(1, witnesses.length) || threshold > witnesses.length) throw reject("log.threshold", "threshold_of_witnesses");
  return { log, witnesses, threshold };
};

const keysDocument = object({ version: integer(1), issued: moment, expires: moment, root: role, publisher: role, log: optional(logRole), type: any });

/** @returns {Keys} */
export function readKeys(/** @type {Uint8Array} */ payload) {
  const data = loads(payload);
  if (data?.type !== "frankly.keys/2") throw new UnsupportedDocument("type", "no_keys");
  const keys = keysDocument(data, ""), { root, publisher, log } = keys;
  if (keys.expires <= keys.issued) throw reject("expires", "expire_after_issue");
  if (keys.expires > keys.issued + LONGEST_VALID) throw reject("expires", "too_long_valid");
  const signing = [...root.keys, ...publisher.keys].map(String);
  if (log && [log.log, ...log.witnesses].some(({ key }) => signing.includes(String(key)))) throw reject("log", "log_key_alone");
  return keys;
}

const payloadOf = (/** @type {Uint8Array} */ data) => readEnvelope(data, KEYS_TYPE).payload;

/** The version of a keys document that need not be trusted yet. */
export const versionOf = (/** @type {Uint8Array} */ data) => readKeys(payloadOf(data)).version;

/** (K1) to (K4): the keys in `data` if they follow from those in `previous`. @returns {Promise<Keys>} */
export async function requireStep(/** @type {Uint8Array | null} */ previous, /** @type {Uint8Array} */ data, /** @type {Verify} */ verify) {
  const envelope = readEnvelope(data, KEYS_TYPE);
  const keys = readKeys(envelope.payload); // (K1)
  await requireSigned(envelope, keys.root, verify); // (K2)
  const before = previous && payloadOf(previous);
  if (!before || sameBytes(before, envelope.payload)) return keys;
  const old = readKeys(before), { version } = keys;
  const known = await unless(requireSigned(envelope, old.root, verify), DocumentRejected, () => null);
  if (version < old.version) throw new RollbackDetected("version", "rollback", version, old.version);
  if (version === old.version && known) throw new Equivocation("version", "equivocation", version);
  if (version !== old.version + 1) throw new KeyChainError("version", "no_successor", version, old.version); // (K3)
  if (!known) throw new KeyChainError("signatures", "strange_root"); // (K4)
  return keys;
}

/** The keys in `data` if they may be used at `now`. */
export async function acceptKeys(
  /** @type {Uint8Array} */ data, /** @type {Uint8Array | null} */ previous, /** @type {number} */ now, /** @type {Verify} */ verify,
) {
  const keys = await requireStep(previous, data, verify), { issued, expires } = keys;
  if (now < issued - CLOCK_SKEW || now > expires + CLOCK_SKEW) throw new ClockError("expires", "keys_window", issued, expires, now);
  return keys;
}

/** The keys document just before `version`, if an unbroken chain leads there from those known. */
async function walkTo(
  /** @type {number} */ version, /** @type {Uint8Array} */ known, /** @type {Uint8Array[]} */ chain, /** @type {Verify} */ verify,
) {
  const first = versionOf(known) + 1;
  if (version - first >= MAX_STEPS) throw new KeyChainError("version", "too_many_steps"); // (K5)
  const served = new Map(chain.map((data) => [versionOf(data), data]));
  for (let number = first; number < version; number++) if (!served.has(number)) throw new KeyChainError("chain", "missing_step", number);
  for (let number = first; number < version; number++) {
    const next = /** @type {Uint8Array} */ (served.get(number));
    await requireStep(known, next, verify);
    known = next;
  }
  return known;
}

/** The newest keys, if an unbroken chain leads to them; `chain` is asked only if versions lie in between. */
export async function walk(
  /** @type {Uint8Array} */ newest, /** @type {Uint8Array | null} */ known, /** @type {() => Promise<Uint8Array[]>} */ chain,
  /** @type {number} */ now, /** @type {Verify} */ verify,
) {
  const { version } = await requireStep(null, newest, verify);
  if (known && version > versionOf(known) + 1) known = await walkTo(version, known, await chain(), verify);
  return acceptKeys(newest, known, now, verify); // (K6)
}

/** The first root that keys name by themselves: their own digest if they are version 1, null otherwise. */
export async function ownRoot(/** @type {Uint8Array} */ data, /** @type {Verify} */ verify) {
  return (await requireStep(null, data, verify)).version === 1 ? digestOf(payloadOf(data)) : null;
}

/**
 * The newest keys of a whole chain, and its first root: the digest of version 1, which is the chain's name. It cannot be
 * claimed, as (K1) to (K4) hold for every step from version 1 on; the keys known, if any, must be among them.
 */
export async function proveChain(
  /** @type {Uint8Array[]} */ whole, /** @type {Uint8Array | null} */ known, /** @type {number} */ now, /** @type {Verify} */ verify,
) {
  /** @type {Uint8Array | null} */
  let newest = null;
  for (const data of whole) {
    const { version } = await requireStep(newest, data, verify);
    if (!newest && version !== 1) break;
    newest = data;
  }
  if (!newest) throw new KeyChainError("chain", "chain_start");
  const keys = await walk(newest, known, async () => whole, now, verify), payloads = whole.map(payloadOf);
  if (known && !payloads.some((one) => sameBytes(one, payloadOf(known)))) throw new Equivocation("chain", "equivocation", versionOf(known));
  return { keys, newest, chain: await digestOf(payloads[0]) };
}

/** The envelopes of a chain as served. @returns {Uint8Array[]} */
export function readChain(/** @type {Uint8Array} */ data) {
  const body = parse(data, MAX_BYTES), chain = body && Object.keys(body).length === 1 && body.chain;
  if (!Array.isArray(chain)) throw new DocumentRejected("envelope", null, "no_chain");
  if (chain.length > MAX_STEPS + 1) throw new KeyChainError("chain", "too_many_steps");
  return chain.map((entry) => {
    const envelope = unbase64(entry);
    if (!envelope) throw new DocumentRejected("envelope", "chain", "no_base64");
    return envelope;
  });
}
