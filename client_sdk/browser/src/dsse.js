// SPDX-License-Identifier: Apache-2.0
/** DSSE envelopes with Ed25519: verify the exact bytes, then parse them (docs/protocol.md §2). */

import { MAX_BYTES, bytesOf, hex, parse, sha256, tooLarge, unbase64 } from "./canonical.js";
import { DocumentRejected, FranklyError } from "./errors.js";

export const SURVEY_TYPE = "application/vnd.frankly.survey+json";
export const KEYS_TYPE = "application/vnd.frankly.keys+json";
export const MAX_ENVELOPE_BYTES = Math.floor(MAX_BYTES / 3) * 4 + 16 * 2 ** 10;
const MAX_SIGNATURES = 32;

/**
 * @typedef {{payloadType: string, payload: Uint8Array, signatures: {keyid: string, sig: Uint8Array}[]}} Envelope
 * @typedef {{keys: Uint8Array[], threshold: number}} Role raw Ed25519 keys, and the number of distinct keys that must
 * sign
 * @typedef {(key: Uint8Array, signature: Uint8Array, message: Uint8Array) => boolean | Promise<boolean>} Verify
 */

/** Verify an Ed25519 signature with WebCrypto. @type {Verify} */
export async function webcryptoVerify(key, signature, message) {
  let imported;
  try {
    imported = await crypto.subtle.importKey("raw", /** @type {BufferSource} */ (key), "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotSupportedError") throw new FranklyError("unsupported", null, "no_ed25519");
    return false;
  }
  return crypto.subtle.verify("Ed25519", imported, /** @type {BufferSource} */ (signature), /** @type {BufferSource} */ (message));
}

/** Return the hex SHA-256 of the scheme and the raw key; always computed, never taken from a message. */
export const keyId = async (/** @type {Uint8Array} */ key) => hex(await sha256(Uint8Array.of(...bytesOf("ed25519\0"), ...key)));

/** Return true for an object with exactly these keys. */
const has = (/** @type {any} */ value, /** @type {string[]} */ keys) =>
  value !== null && typeof value === "object" && Object.keys(value).length === keys.length && keys.every((key) => Object.hasOwn(value, key));

/** Read an envelope of the expected type (steps 1 and 2). @returns {Envelope} */
export function readEnvelope(/** @type {Uint8Array} */ data, /** @type {string} */ type) {
  const fault = (/** @type {string | null} */ field, /** @type {string} */ key) => new DocumentRejected("envelope", field, key);
  if (data.length > MAX_ENVELOPE_BYTES) throw tooLarge();
  const body = parse(data, MAX_ENVELOPE_BYTES);
  if (!has(body, ["payload", "payloadType", "signatures"])) throw fault(null, "no_envelope");
  if (body.payloadType !== type) throw new DocumentRejected("type", "payloadType", "payload_type", type);
  const payload = unbase64(body.payload), given = body.signatures;
  if (!payload) throw fault("payload", "no_base64");
  if (payload.length > MAX_BYTES) throw tooLarge("payload");
  if (!Array.isArray(given) || given.length < 1 || given.length > MAX_SIGNATURES) throw fault("signatures", "signature_count");
  const signatures = given.map((entry, i) => {
    if (!has(entry, ["keyid", "sig"]) || typeof entry.keyid !== "string") throw fault(`signatures[${i}]`, "no_signature");
    const sig = unbase64(entry.sig);
    if (!sig) throw fault(`signatures[${i}].sig`, "no_base64");
    return { keyid: entry.keyid, sig };
  });
  if (new Set(signatures.map((entry) => entry.keyid)).size !== signatures.length) throw new DocumentRejected("signature", "signatures", "signed_twice");
  return { payloadType: type, payload, signatures };
}

/** Return the ids of the role's keys that signed; throws DocumentRejected("signature") if there are fewer than the threshold (step 3). */
export async function requireSigned(/** @type {Envelope} */ envelope, /** @type {Role} */ { keys, threshold }, /** @type {Verify} */ verify) {
  const message = pae(envelope);
  /** @type {string[]} */
  const good = [];
  for (const key of keys) {
    const id = await keyId(key);
    const found = envelope.signatures.find((entry) => entry.keyid === id);
    if (found && !good.includes(id) && (await verify(key, found.sig, message))) good.push(id);
  }
  if (threshold < 1) throw new DocumentRejected("signature", "threshold", "threshold_0");
  if (good.length < threshold) throw new DocumentRejected("signature", "signatures", "signatures", good.length, threshold);
  return good;
}

/** Return DSSE's pre-authentication encoding, the bytes that are signed. */
function pae(/** @type {Envelope} */ { payloadType, payload }) {
  const head = bytesOf(`DSSEv1 ${bytesOf(payloadType).length} ${payloadType} ${payload.length} `);
  const message = new Uint8Array(head.length + payload.length);
  message.set(head);
  message.set(payload, head.length);
  return message;
}
