// SPDX-License-Identifier: Apache-2.0
/**
 * The transparency log (step 8; docs/protocol.md §9): checks of proofs, witnessed checkpoints and append-only growth,
 * without requests that identify the device.
 */

import { bytesOf, digestOf, sameBytes, sha256, textOf, unbase64, unhex } from "./canonical.js";
import { CLOCK_SKEW } from "./survey.js";
import { DocumentRejected, Equivocation, LogError, NetworkError, RollbackDetected, unless } from "./errors.js";
import { time } from "./schema.js";

/** @typedef {{origin: string, size: number, root: Uint8Array, text: Uint8Array, signatures: {name: string, raw: Uint8Array}[]}} Checkpoint */

const MAX_NOTE = 64 * 2 ** 10, MAX_PROOF = MAX_NOTE + 8 * 2 ** 10, MAX_PATH = 64, MAX_ENTRIES = 131_072;
const CHECKPOINT_AGE = 30 * 86_400_000;
const LOG = 1, WITNESS = 4;

const join = (/** @type {(Uint8Array | number[])[]} */ ...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));
const node = (/** @type {Uint8Array} */ left, /** @type {Uint8Array} */ right) => sha256(join([1], left, right));

/** Read base64 in its one canonical spelling; throws LogError. */
function exact(/** @type {string} */ text, /** @type {string} */ field) {
  const bytes = unbase64(text);
  if (!bytes || btoa(String.fromCharCode(...bytes)) !== text) throw new LogError(field, "no_base64");
  return bytes;
}

/** @returns {Checkpoint} */
export function readNote(/** @type {Uint8Array} */ data) {
  if (data.length > MAX_NOTE) throw new LogError("checkpoint", `a checkpoint has at most ${MAX_NOTE} bytes`);
  let note;
  try {
    note = textOf(data);
  } catch {
    throw new LogError("checkpoint", "a checkpoint is UTF-8 text");
  }
  const gap = note.lastIndexOf("\n\n");
  if (gap < 0 || !note.endsWith("\n") || gap + 2 >= note.length || /[\0-\x09\x0b-\x1f]/.test(note))
    throw new LogError("checkpoint", "a checkpoint is a text, an empty line and signatures");
  const text = note.slice(0, gap + 1), lines = text.split("\n"), signed = note.slice(gap + 2, -1).split("\n");
  if (signed.length > 64) throw new LogError("signature", "a checkpoint has at most 64 signatures");
  const signatures = signed.map((line) => {
    const found = /^— ([^\s\x85+]{1,255}) ([A-Za-z0-9+/]+={0,2})$/u.exec(line);
    const raw = found ? exact(found[2], "signature") : new Uint8Array();
    if (!found || raw.length < 5) throw new LogError("signature", "a signature line reads: — name base64");
    return { name: found[1], raw };
  });
  if (lines.length !== 4 || !/^[^\s\x85+\x7f]{1,255}$/u.test(lines[0]))
    throw new LogError("checkpoint", "a checkpoint has three lines: origin, size, root");
  if (!/^(0|[1-9]\d{0,15})$/.test(lines[1]) || !Number.isSafeInteger(Number(lines[1])))
    throw new LogError("size", "the size of a tree is a whole number without leading zeroes");
  const root = exact(lines[2], "root");
  if (root.length !== 32) throw new LogError("root", "the root of a tree has 32 bytes");
  return { origin: lines[0], size: Number(lines[1]), root, text: bytesOf(text), signatures };
}

/** @returns {{index: number, path: Uint8Array[], note: Uint8Array, head: Checkpoint}} */
export function readProof(/** @type {Uint8Array} */ data) {
  if (data.length > MAX_PROOF) throw new LogError("proof", `a proof has at most ${MAX_PROOF} bytes`);
  const gap = data.findIndex((byte, i) => byte === 10 && data[i + 1] === 10);
  const lines = String.fromCharCode(...data.slice(0, Math.max(0, gap))).split("\n");
  const place = /^index (0|[1-9]\d{0,15})$/.exec(lines[1] ?? "");
  if (gap < 0 || lines[0] !== "c2sp.org/tlog-proof@v1" || !place || lines.length > 2 + MAX_PATH)
    throw new LogError("proof", "a proof begins with the lines c2sp.org/tlog-proof@v1 and index");
  const path = lines.slice(2).map((line) => exact(line, "proof"));
  if (path.some((entry) => entry.length !== 32)) throw new LogError("proof", "a proof has one hash of 32 bytes per line");
  const index = Number(place[1]);
  if (!Number.isSafeInteger(index)) throw new LogError("index", "no tree is that large");
  const note = data.slice(gap + 2);
  return { index, path, note, head: readNote(note) };
}

/** Return the times of the signatures that name this key; throws LogError if one of them is invalid. */
async function valid(
  /** @type {Checkpoint} */ head, /** @type {import("./keys.js").NamedKey} */ key, /** @type {number} */ kind, /** @type {import("./dsse.js").Verify} */ verify,
) {
  const hint = (await sha256(join(bytesOf(`${key.name}\n`), [kind], key.key))).slice(0, 4);
  const times = [];
  for (const { raw } of head.signatures.filter((one) => one.name === key.name && sameBytes(one.raw.slice(0, 4), hint))) {
    let value = raw.slice(4), message = head.text, seconds = 0;
    if (kind === WITNESS) {
      seconds = value.slice(0, 8).reduce((all, byte) => all * 256 + byte, 0);
      if (value.length < 8 || seconds >= 2 ** 35) throw new LogError("signature", "a witness signs a time of 8 bytes");
      message = join(bytesOf(`cosignature/v1\ntime ${seconds}\n`), head.text);
      value = value.slice(8);
    }
    if (!(await verify(key.key, value, message))) throw new LogError("signature", `a signature of ${key.name} is invalid`);
    times.push(seconds * 1000);
  }
  return times;
}

/** Throw LogError unless the log signed the head (8.1) and enough witnesses cosigned it recently (8.2). */
export async function requireWatched(
  /** @type {Checkpoint} */ head, /** @type {import("./keys.js").LogRole} */ role, /** @type {number} */ now, /** @type {import("./dsse.js").Verify} */ verify,
) {
  if (!role.witnesses.length) throw new LogError("witnesses", "no witness watches this log, so devices do not rely on it");
  if (head.origin !== role.log.name) throw new LogError("origin", `this is not a checkpoint of the log ${role.log.name}`);
  if (!(await valid(head, role.log, LOG, verify)).length) throw new LogError("signature", "the log's key did not sign this checkpoint");
  const seen = [];
  for (const witness of role.witnesses) {
    const times = await valid(head, witness, WITNESS, verify);
    if (times.length) seen.push(Math.max(...times));
  }
  const fresh = seen.filter((at) => now - CHECKPOINT_AGE <= at && at <= now + CLOCK_SKEW);
  if (fresh.length < role.threshold) {
    const last = seen.length ? `; the latest cosignature is of ${time(Math.max(...seen))}, this clock says ${time(now)}` : "";
    throw new LogError("witnesses", `${fresh.length} of the ${role.threshold} witnesses needed signed this checkpoint in the last 30 days${last}`);
  }
}

/** Return the leaf hash of a document; its entry is the 32 raw bytes of the digest. */
export const documentLeaf = (/** @type {string} */ digest) => sha256(join([0], unhex(digest.slice(7))));

/** Throw LogError unless the path leads from the document's leaf to the root (8.3); RFC 9162 §2.1.3.2. */
export async function requireInclusion(
  /** @type {Uint8Array} */ leaf, /** @type {number} */ index, /** @type {{size: number, root: Uint8Array}} */ { size, root }, /** @type {Uint8Array[]} */ path,
) {
  if (index < 0 || index >= size) throw new LogError("index", "the index lies beyond the tree");
  let at = BigInt(index), last = BigInt(size - 1);
  if (path.length > MAX_PATH || path.some((entry) => entry.length !== 32)) throw new LogError("proof", "a proof has at most 64 hashes of 32 bytes");
  let found = leaf;
  for (const sibling of path) {
    if (!last) throw new LogError("proof", "the path is too long for the tree");
    if (at & 1n || at === last) {
      found = await node(sibling, found);
      for (; !(at & 1n) && at; at >>= 1n) last >>= 1n;
    } else found = await node(found, sibling);
    at >>= 1n;
    last >>= 1n;
  }
  if (last) throw new LogError("proof", "the path is too short for the tree");
  if (!sameBytes(found, root)) throw new LogError("proof", "the path does not lead to the checkpoint's root: the document is not in this log");
}

/** Return the root over leaf hashes: pairs are hashed level by level, and an unpaired last hash moves up a level. */
export async function treeRoot(/** @type {Uint8Array[]} */ leaves) {
  let level = leaves;
  while (level.length > 1)
    level = await Promise.all(Array.from({ length: Math.ceil(level.length / 2) }, async (_, i) =>
      level[2 * i + 1] ? node(level[2 * i], level[2 * i + 1]) : level[2 * i]));
  return level[0] ?? sha256(new Uint8Array());
}

/**
 * @typedef {object} Rule
 * @property {string} [chain] the first root of the keys, under which proofs and heads are stored
 * @property {import("./keys.js").LogRole} role @property {import("./store.js").Store} store @property {number} now
 * @property {import("./dsse.js").Verify} verify @property {(name: string) => void} announce
 * @property {(path: string, most: number, type: string) => Promise<Uint8Array>} fetch
 */

/** Throw unless the document is in a witnessed, append-only log (step 8). */
export async function requireLogged(/** @type {string} */ digest, /** @type {boolean} */ preferKept, /** @type {Rule} */ rule) {
  const { chain = "", role, store, now, verify, fetch, announce } = rule;
  const prove = async (/** @type {Uint8Array} */ data) => {
    const proof = readProof(data);
    await requireWatched(proof.head, role, now, verify); // (8.1) (8.2)
    await requireInclusion(await documentLeaf(digest), proof.index, proof.head, proof.path); // (8.3)
    return proof;
  };
  const { proof: kept } = (await store.get("proofs", [chain, digest])) ?? (await store.get("proofs", ["", digest])) ?? {};
  const keptIsGood = async () => kept && unless(prove(kept).then(Boolean), DocumentRejected, () => false);
  if (preferKept && (await keptIsGood())) return;
  const data = await unless(fetch(`/v1/log/proof/${digest}`, MAX_PROOF, "text/plain"), NetworkError, async (error) => {
    if (await keptIsGood()) return null;
    throw error;
  });
  if (!data) return;
  const { head, note } = await prove(data);
  const before = await lastHead(rule);
  if (before) await requireGrowth(head, note, before, rule); // (8.4)
  // This is the first head under this name, but the chain has other heads, so the log has been renamed.
  const others = before ? [] : (await store.all("checkpoints")).filter((one) => one.chain === chain);
  if (others.length) await store.keepEvidence(chain, await Promise.all(others.map(async (one) => [await digestOf(one.note), one.note])));
  await store.change("checkpoints", [chain, role.log.name], (now) => (!now || head.size >= now.size) && { chain, size: head.size, note });
  await store.change("proofs", [chain, digest], () => ({ proof: data }));
  if (others.length) announce("log_renamed");
}

/** Return the last remembered head of this log; a head that was stored without a chain is used if the log's key signed it. */
async function lastHead(/** @type {Rule} */ { chain, role: { log }, store, verify }) {
  const own = await store.get("checkpoints", [chain, log.name]), old = await store.get("checkpoints", ["", log.name]);
  const isOurs = !own && old && (await unless(valid(readNote(old.note), log, LOG, verify), LogError, () => [])).length;
  return (isOurs ? old : own)?.note;
}

/**
 * Throw unless the log has only grown since the last remembered head (8.4). All leaves are fetched, because a request
 * for a proof would name that head.
 */
async function requireGrowth(
  /** @type {Checkpoint} */ head, /** @type {Uint8Array} */ note, /** @type {Uint8Array} */ before, /** @type {Rule} */ { chain = "", store, fetch },
) {
  const last = readNote(before);
  if (head.size < last.size) throw new RollbackDetected("log", `the log shows ${head.size} entries, ${last.size} have been seen before`);
  if (head.size === last.size && sameBytes(head.root, last.root)) return;
  if (head.size > last.size) {
    if (head.size > MAX_ENTRIES) throw new LogError("size", `a log of more than ${MAX_ENTRIES} entries cannot be checked here: update the app`);
    const data = await fetch(`/v1/log/leaves?size=${head.size}`, 32 * head.size, "application/octet-stream");
    if (data.length !== 32 * head.size) throw new LogError("leaves", "the number of the log's leaves differs from its head");
    const leaves = Array.from({ length: head.size }, (_, i) => data.slice(32 * i, 32 * i + 32));
    if (!sameBytes(await treeRoot(leaves), head.root)) throw new LogError("leaves", "the log's leaves do not lead to its head");
    if (sameBytes(await treeRoot(leaves.slice(0, last.size)), last.root)) return;
  }
  await store.keepEvidence(chain, [[await digestOf(before), before], [await digestOf(note), note]]);
  throw new Equivocation("log", "the log has forked: it shows a different history than before");
}
