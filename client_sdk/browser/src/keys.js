// SPDX-License-Identifier: Apache-2.0
/** `frankly.keys/1` and the walk from the keys known to the newest ones (docs/protocol.md §3.1). */

import { loads, parse, sameBytes, unbase64, unhex, MAX_BYTES } from "./canonical.js";
import { CLOCK_SKEW } from "./documents.js";
import { KEYS_TYPE, readEnvelope, requireSigned } from "./dsse.js";
import { ClockError, DocumentRejected, Equivocation, KeyChainError, RollbackDetected, UnsupportedDocument } from "./errors.js";
import * as schema from "./schema.js";

/**
 * @typedef {import("./dsse.js").Role} Role
 * @typedef {{name: string, key: Uint8Array}} NamedKey
 * @typedef {{log: NamedKey, witnesses: NamedKey[], threshold: number}} LogRole
 * @typedef {{version: number, issued: number, expires: number, root: Role, publisher: Role, log: LogRole | null}} Keys
 */

const MAX_STEPS = 256;
const text = (/** @type {Uint8Array} */ key) => key.join();

function rawKey(/** @type {any} */ value, /** @type {string} */ field) {
  const { scheme, public: given } = schema.record(value, field, ["scheme", "public"]);
  if (scheme !== "ed25519") throw new UnsupportedDocument("only ed25519 keys are known: update the app", `${field}.scheme`);
  return unhex(schema.hex256(given, `${field}.public`));
}

/** @returns {Role} */
function role(/** @type {any} */ value, /** @type {string} */ field) {
  const data = schema.record(value, field, ["keys", "threshold"]);
  const keys = schema.items(data.keys, `${field}.keys`, 1, 32, rawKey);
  const threshold = schema.integer(data.threshold, `${field}.threshold`, 1, 32);
  if (new Set(keys.map(text)).size !== keys.length || threshold > keys.length)
    throw schema.reject("a threshold lies between 1 and the number of distinct keys", "threshold");
  return { keys, threshold };
}

/** @returns {NamedKey} */
function named(/** @type {any} */ value, /** @type {string} */ field) {
  const { name, ...key } = schema.record(value, field, ["name", "scheme", "public"]);
  if (typeof name !== "string" || !/^[^\s\x85+\x00-\x1f\x7f]{1,255}$/u.test(name) || /[\x1c-\x1f]/.test(name))
    throw schema.reject("a name has no spaces, no plus, and at most 255 characters", `${field}.name`);
  return { name, key: rawKey(key, field) };
}

/** @returns {LogRole} */
export function logRole(/** @type {any} */ value, /** @type {string} */ field) {
  const { witnesses: watching, threshold: needed, ...own } = schema.record(value, field, ["name", "scheme", "public", "witnesses", "threshold"]);
  const log = named(own, field);
  const witnesses = schema.items(watching, `${field}.witnesses`, 0, 32, named);
  const threshold = schema.integer(needed, `${field}.threshold`, 0, 32);
  const all = [log, ...witnesses];
  if (new Set(all.map((one) => text(one.key))).size !== all.length || new Set(all.map((one) => one.name)).size !== all.length)
    throw schema.reject("the log and its witnesses have a key and a name each of their own", "log.witnesses");
  if (threshold < Math.min(1, witnesses.length) || threshold > witnesses.length)
    throw schema.reject("a threshold lies between 1 and the number of witnesses", "log.threshold");
  return { log, witnesses, threshold };
}

/** @returns {Keys} */
function readKeys(/** @type {Uint8Array} */ payload) {
  const data = loads(payload);
  if (data === null || typeof data !== "object" || data.type !== "frankly.keys/1")
    throw new UnsupportedDocument("expected a document of type frankly.keys/1: update the app", "type");
  schema.record(data, null, ["type", "version", "issued", "expires", "root", "publisher", "log"]);
  const keys = {
    version: schema.integer(data.version, "version", 1),
    issued: schema.moment(data.issued, "issued"),
    expires: schema.moment(data.expires, "expires"),
    root: role(data.root, "root"),
    publisher: role(data.publisher, "publisher"),
    log: schema.optional(data.log, "log", logRole),
  };
  if (keys.expires <= keys.issued) throw schema.reject("keys expire after they were issued", "expires");
  const signing = new Set([...keys.root.keys, ...keys.publisher.keys].map(text));
  if (keys.log && [keys.log.log, ...keys.log.witnesses].some((one) => signing.has(text(one.key))))
    throw schema.reject("a key of the log or a witness serves no other role", "log");
  return keys;
}

/** (K1) to (K4): the keys in `data` if they follow from those in `previous`. @returns {Promise<Keys>} */
async function requireStep(/** @type {Uint8Array | null} */ previous, /** @type {Uint8Array} */ data, /** @type {import("./dsse.js").Verify} */ verify) {
  const envelope = readEnvelope(data, KEYS_TYPE);
  const keys = readKeys(envelope.payload); // (K1)
  await requireSigned(envelope, keys.root, verify); // (K2)
  const before = previous && readEnvelope(previous, KEYS_TYPE).payload;
  if (!before || sameBytes(before, envelope.payload)) return keys;
  const old = readKeys(before);
  const known = await requireSigned(envelope, old.root, verify).then(Boolean, (error) => {
    if (error instanceof DocumentRejected) return false;
    throw error;
  });
  if (keys.version < old.version)
    throw new RollbackDetected(`keys version ${keys.version} is older than version ${old.version}, seen before`);
  if (keys.version === old.version && known) throw new Equivocation(`keys version ${keys.version} has been seen here with other content`);
  if (keys.version !== old.version + 1) throw new KeyChainError(`version ${keys.version} does not follow version ${old.version}`, "version"); // (K3)
  if (!known) throw new KeyChainError("the root keys known so far did not sign the new ones", "signatures"); // (K4)
  return keys;
}

/** The keys in `data` if they may be used at `now`. */
export async function acceptKeys(
  /** @type {Uint8Array} */ data, /** @type {Uint8Array | null} */ previous, /** @type {number} */ now, /** @type {import("./dsse.js").Verify} */ verify,
) {
  const keys = await requireStep(previous, data, verify);
  if (now < keys.issued - CLOCK_SKEW || now > keys.expires + CLOCK_SKEW)
    throw new ClockError(
      `the keys are valid from ${schema.time(keys.issued)} to ${schema.time(keys.expires)}, this device's clock says ${schema.time(now)}`,
      "expires",
    );
  return keys;
}

/** The newest keys, if an unbroken chain leads to them; `chain` is asked only if versions lie in between. */
export async function walk(
  /** @type {Uint8Array} */ newest, /** @type {Uint8Array | null} */ known, /** @type {() => Promise<Uint8Array[]>} */ chain,
  /** @type {number} */ now, /** @type {import("./dsse.js").Verify} */ verify,
) {
  const target = await requireStep(null, newest, verify);
  const version = (/** @type {Uint8Array} */ data) => readKeys(readEnvelope(data, KEYS_TYPE).payload).version;
  const first = known ? version(known) + 1 : target.version;
  if (target.version - first >= MAX_STEPS) throw new KeyChainError(`more than ${MAX_STEPS} rotations have been missed: update the app`, "version"); // (K5)
  const served = target.version > first ? new Map((await chain()).map((data) => [version(data), data])) : new Map();
  for (let number = first; number < target.version; number++)
    if (!served.has(number)) throw new KeyChainError(`version ${number} of the keys is missing from the chain`, "chain");
  for (let number = first; number < target.version; number++) {
    await requireStep(known, served.get(number), verify);
    known = served.get(number);
  }
  return acceptKeys(newest, known, now, verify); // (K6)
}

/** The envelopes of a chain as served. @returns {Uint8Array[]} */
export function readChain(/** @type {Uint8Array} */ data) {
  const body = parse(data, MAX_BYTES);
  const chain = body && Object.keys(body).length === 1 && body.chain;
  if (!Array.isArray(chain)) throw new DocumentRejected("envelope", "a chain of keys is an object with exactly the field chain");
  if (chain.length > MAX_STEPS + 1) throw new KeyChainError(`a chain has at most ${MAX_STEPS} steps: update the app`, "chain");
  return chain.map((entry) => {
    const envelope = unbase64(entry);
    if (!envelope) throw new DocumentRejected("envelope", "a chain of keys lists envelopes in base64", "chain");
    return envelope;
  });
}
