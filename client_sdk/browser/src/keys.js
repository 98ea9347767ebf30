// SPDX-License-Identifier: Apache-2.0
/** `frankly.keys/2`, and the chain of keys, proven from version 1 to the newest (docs/protocol.md §3.1). */

import { MAX_BYTES, digestOf, loads, parse, sameBytes, unbase64, unhex } from "./canonical.js";
import { CLOCK_SKEW, LONGEST_VALID } from "./survey.js";
import { KEYS_TYPE, readEnvelope, requireSigned } from "./dsse.js";
import { ClockError, DocumentRejected, Equivocation, KeyChainError, RollbackDetected, UnsupportedDocument, unless } from "./errors.js";
import { any, hex256, integer, list, moment, object, optional, reject, under } from "./schema.js";

/**
 * @typedef {import("./dsse.js").Role} Role
 * @typedef {import("./dsse.js").Verify} Verify
 * @typedef {{name: string, key: Uint8Array}} NamedKey
 * @typedef {{log: NamedKey, witnesses: NamedKey[], threshold: number}} LogRole
 * @typedef {{version: number, issued: number, expires: number, root: Role, publisher: Role, log: LogRole | null}} Keys
 * @typedef {{chain: string | null, envelope: Uint8Array}} KnownKeys chain: the first root of the keys, null if it is unproven
 * @typedef {{chain: string, envelope: Uint8Array, keys: Keys, payloads: Uint8Array[]}} Proven the newest keys of a whole chain, and the payloads of all its versions
 */

const MAX_VERSIONS = 1024;

/** Return true if no two values are equal. */
const isDistinct = (/** @type {any[]} */ values) => new Set(values.map(String)).size === values.length;

const P = 2n ** 255n - 19n; // the prime of Ed25519's field
const SMALL_ORDER = [0n, 1n, 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n]; // y or P - y of each point of small order

/** Return true for an Ed25519 key that is a point of small order, whose signatures can be forged, or is not in canonical form. */
function isWeak(/** @type {string} */ key) {
  const y = BigInt.asUintN(255, BigInt(`0x${key.match(/../g)?.reverse().join("")}`)); // the highest bit is the sign of x
  return y >= P || SMALL_ORDER.some((one) => y === one || y === P - one);
}

/** Readers of the fields of a public key. */
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

/** Read a version of the keys; throws DocumentRejected unless its own root signed it (K1) (K2). */
async function readVersion(/** @type {Uint8Array} */ data, /** @type {Verify} */ verify) {
  const envelope = readEnvelope(data, KEYS_TYPE), keys = readKeys(envelope.payload); // (K1)
  await requireSigned(envelope, keys.root, verify); // (K2)
  return { envelope, keys };
}

/** Throw KeyChainError unless a version is the next one (K3) and the previous root signed it (K4); (K2) has already checked an unchanged root. */
async function requireFollows(
  /** @type {Awaited<ReturnType<typeof readVersion>>} */ { envelope, keys }, /** @type {Keys} */ old, /** @type {Verify} */ verify,
) {
  if (keys.version !== old.version + 1) throw new KeyChainError("version", "no_successor", keys.version, old.version); // (K3)
  if (String([keys.root.threshold, ...keys.root.keys]) === String([old.root.threshold, ...old.root.keys])) return;
  await unless(requireSigned(envelope, old.root, verify), DocumentRejected, () => {
    throw new KeyChainError("signatures", "strange_root"); // (K4)
  });
}

/** Throw ClockError unless the keys are valid now. */
function requireUsable(/** @type {Keys} */ { issued, expires }, /** @type {number} */ now) {
  if (now < issued - CLOCK_SKEW || now > expires + CLOCK_SKEW) throw new ClockError("expires", "keys_window", issued, expires, now);
}

/** Return the keys in `data` if their own root signed them and they are valid at `now`. */
export async function acceptKeys(/** @type {Uint8Array} */ data, /** @type {number} */ now, /** @type {Verify} */ verify) {
  const { keys } = await readVersion(data, verify);
  requireUsable(keys, now);
  return keys;
}

/**
 * Return the keys that an app ships with: version 1 determines its chain; for a later version, the server's chain must
 * contain it.
 * @returns {Promise<KnownKeys>}
 */
export async function shippedKeys(/** @type {Uint8Array} */ envelope, /** @type {Verify} */ verify) {
  const { keys } = await readVersion(envelope, verify);
  return { envelope, chain: keys.version === 1 ? await digestOf(payloadOf(envelope)) : null };
}

/** Throw unless the known keys are one of the versions of the chain (K6). */
export function requireContains(/** @type {Proven} */ { chain, keys, payloads }, /** @type {KnownKeys} */ known) {
  const payload = payloadOf(known.envelope), { version } = readKeys(payload);
  if (known.chain && known.chain !== chain) throw new KeyChainError("chain", "other_chain");
  if (version > payloads.length) throw new RollbackDetected("version", "rollback", keys.version, version);
  if (!sameBytes(payloads[version - 1], payload)) throw new Equivocation("version", "equivocation", version);
}

/**
 * Return the newest keys of a whole chain, and the chain's name, the digest of version 1. The name cannot be forged,
 * because (K1) to (K4) are checked for every version; the known keys, if any, must be one of the versions.
 * @returns {Promise<Proven>}
 */
export async function proveChain(
  /** @type {Uint8Array[]} */ whole, /** @type {KnownKeys | null} */ known, /** @type {number} */ now, /** @type {Verify} */ verify,
) {
  const versions = [];
  if (!whole.length || whole.length > MAX_VERSIONS) throw new KeyChainError("chain", "chain_length", MAX_VERSIONS); // (K5)
  for (const data of whole) versions.push(await readVersion(data, verify));
  if (versions[0].keys.version !== 1) throw new KeyChainError("chain", "chain_start"); // (K5)
  for (let i = 1; i < versions.length; i++) await requireFollows(versions[i], versions[i - 1].keys, verify);
  const payloads = versions.map((one) => one.envelope.payload), { keys } = versions[versions.length - 1];
  const proven = { chain: await digestOf(payloads[0]), envelope: whole[whole.length - 1], keys, payloads };
  if (known) requireContains(proven, known);
  requireUsable(keys, now); // (K7): earlier versions may have expired
  return proven;
}

/** Return the envelopes in a chain in the server's format. @returns {Uint8Array[]} */
export function readChain(/** @type {Uint8Array} */ data) {
  const body = parse(data, MAX_BYTES), chain = body && Object.keys(body).length === 1 && body.chain;
  if (!Array.isArray(chain)) throw new DocumentRejected("envelope", null, "no_chain");
  return chain.map((entry) => {
    const envelope = unbase64(entry);
    if (!envelope) throw new DocumentRejected("envelope", "chain", "no_base64");
    return envelope;
  });
}
