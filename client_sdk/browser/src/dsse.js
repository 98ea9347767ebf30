// SPDX-License-Identifier: Apache-2.0
/** DSSE envelopes with Ed25519: verify the exact bytes first, then parse those same bytes (docs/protocol.md §2). */

import { MAX_BYTES, bytesOf, hex, parse, sha256, unbase64, unhex } from "./canonical.js";
import { DocumentRejected, FranklyError } from "./errors.js";

export const SURVEY_TYPE = "application/vnd.frankly.survey+json";
export const KEYS_TYPE = "application/vnd.frankly.keys+json";
export const MAX_ENVELOPE_BYTES = Math.floor(MAX_BYTES / 3) * 4 + 16 * 2 ** 10;
const MAX_SIGNATURES = 32;

/**
 * @typedef {{payloadType: string, payload: Uint8Array, signatures: {keyid: string, sig: Uint8Array}[]}} Envelope
 * @typedef {{keys: Uint8Array[], threshold: number}} Role raw Ed25519 keys, and how many distinct ones must sign
 * @typedef {(key: Uint8Array, signature: Uint8Array, message: Uint8Array) => boolean | Promise<boolean>} Verify
 */

/** Ed25519 by WebCrypto. @type {Verify} */
export async function webcryptoVerify(key, signature, message) {
  let imported;
  try {
    imported = await crypto.subtle.importKey("raw", /** @type {BufferSource} */ (key), "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotSupportedError")
      throw new FranklyError("this browser does not know Ed25519: give Client.open a `verify` function", "unsupported");
    return false;
  }
  return crypto.subtle.verify("Ed25519", imported, /** @type {BufferSource} */ (signature), /** @type {BufferSource} */ (message));
}

/** SHA-256 over scheme and raw key: computed here, never trusted from the wire. */
export async function keyId(/** @type {Uint8Array} */ key) {
  return hex(await sha256(Uint8Array.of(...bytesOf("ed25519\0"), ...key)));
}

/** Read an envelope of the expected type (steps 1 and 2). @returns {Envelope} */
export function readEnvelope(/** @type {Uint8Array} */ data, /** @type {string} */ type) {
  const fault = (/** @type {string} */ detail, /** @type {string | null} */ field = null) => new DocumentRejected("envelope", detail, field);
  if (data.length > MAX_ENVELOPE_BYTES)
    throw new DocumentRejected("size", `the envelope is larger than ${MAX_ENVELOPE_BYTES} bytes`);
  const body = parse(data, MAX_ENVELOPE_BYTES);
  if (!has(body, ["payload", "payloadType", "signatures"]))
    throw fault("an envelope has exactly payload, payloadType and signatures");
  if (body.payloadType !== type) throw new DocumentRejected("type", `expected ${type}`, "payloadType");
  const payload = unbase64(body.payload);
  if (!payload) throw fault("expected base64 text", "payload");
  if (payload.length > MAX_BYTES) throw new DocumentRejected("size", `the payload is larger than ${MAX_BYTES} bytes`, "payload");
  const given = body.signatures;
  if (!Array.isArray(given) || given.length < 1 || given.length > MAX_SIGNATURES)
    throw fault(`an envelope has 1 to ${MAX_SIGNATURES} signatures`, "signatures");
  const signatures = given.map((entry, i) => {
    const sig = has(entry, ["keyid", "sig"]) && typeof entry.keyid === "string" ? unbase64(entry.sig) : undefined;
    if (!sig) throw fault("a signature has exactly keyid and sig", `signatures[${i}]`);
    return { keyid: entry.keyid, sig };
  });
  if (new Set(signatures.map((entry) => entry.keyid)).size !== signatures.length)
    throw new DocumentRejected("signature", "a key may sign only once", "signatures");
  return { payloadType: type, payload, signatures };
}

/** The ids of the role's keys that signed; DocumentRejected("signature") below the threshold (step 3). */
export async function requireSigned(/** @type {Envelope} */ envelope, /** @type {Role} */ role, /** @type {Verify} */ verify) {
  const message = pae(envelope);
  /** @type {string[]} */
  const good = [];
  for (const key of role.keys) {
    const id = await keyId(key);
    const found = envelope.signatures.find((entry) => entry.keyid === id);
    if (found && !good.includes(id) && (await verify(key, found.sig, message))) good.push(id);
  }
  if (role.threshold < 1) throw new DocumentRejected("signature", "a threshold is at least 1", "threshold");
  if (good.length < role.threshold)
    throw new DocumentRejected("signature", `${good.length} of the ${role.threshold} trusted signatures needed are valid`, "signatures");
  return good;
}

/** DSSE's pre-authentication encoding: what is really signed. */
function pae(/** @type {Envelope} */ { payloadType, payload }) {
  const head = bytesOf(`DSSEv1 ${bytesOf(payloadType).length} ${payloadType} ${payload.length} `);
  const message = new Uint8Array(head.length + payload.length);
  message.set(head);
  message.set(payload, head.length);
  return message;
}

function has(/** @type {any} */ value, /** @type {string[]} */ keys) {
  return (
    value !== null && typeof value === "object" && Object.keys(value).length === keys.length && keys.every((key) => Object.hasOwn(value, key))
  );
}

/** A raw key from 64 hex digits that have been checked. */
export const rawKey = unhex;
