// SPDX-License-Identifier: Apache-2.0
/** Retrieval of a survey from the store or the server, with every check in both cases. */

import { MAX_BYTES, digestOf, sameBytes } from "./canonical.js";
import { MAX_ENVELOPE_BYTES, SURVEY_TYPE, readEnvelope, requireSigned } from "./dsse.js";
import { DocumentRejected, Equivocation, NetworkError, RollbackDetected, part, unless } from "./errors.js";
import { acceptKeys, proveChain, readChain, requireContains, shippedKeys } from "./keys.js";
import { requireCollector } from "./link.js";
import { requireWindow } from "./survey.js";

/**
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {{survey: Survey, level: import("./ledger.js").ReportLevel, chain: string, signedBy: string[], trust: {pinned: boolean, logged: boolean}}} Opened chain: the first root of the keys
 * @typedef {{version: number, digest: string, envelope: Uint8Array}} Remembered
 * @typedef {{link: import("./link.js").SurveyLink, store: import("./store.js").Store, transport: import("./transport.js").Transport,
 *   now: number, verify: import("./dsse.js").Verify, wantsLog: boolean, collectHosts: string[], announce: (name: string) => void,
 *   check: (payload: Uint8Array, digest: string) => ReturnType<typeof import("./verifier.js").check>, chain?: string}} Opening check: of verifier.js, in a worker; chain: the first root of the keys, once it is known
 * @typedef {import("./keys.js").Keys} Keys
 * @typedef {import("./keys.js").KnownKeys} KnownKeys
 */

async function fetchBytes(/** @type {Opening} */ { transport, link }, /** @type {string} */ path, /** @type {number} */ most, expected = "application/json") {
  const { status, type, body } = await transport.exchange(link.origin + path, null, most);
  if (status === 404) throw new NetworkError("not_found");
  if (status !== 200) throw new NetworkError("status", "status", status);
  if (type !== expected) throw new NetworkError("not_json");
  return body;
}

/**
 * Return the survey of the link; `shipped` is the keys document that the app ships with. A chain of keys is looked up
 * by its alias, the server's origin with the digest of any shipped keys; all other data is stored under the chain's
 * first root.
 * @returns {Promise<Opened>}
 */
export async function openSurvey(/** @type {Opening} */ opening, /** @type {Uint8Array | null} */ shipped) {
  const { link, now, verify } = opening;
  const alias = shipped ? `${link.origin}#${await digestOf(shipped)}` : link.origin, known = await knownKeys(opening, alias, shipped);
  if (known?.chain) {
    const scoped = { ...opening, chain: known.chain };
    const trusted = await unless(acceptKeys(known.envelope, now, verify), DocumentRejected, () => null);
    if (trusted && (await isCached(opening, await recall(scoped, trusted), trusted))) return withKeys(scoped, trusted);
  }
  const { chain, keys } = await newestKeys(opening, alias, known);
  return withKeys({ ...opening, chain }, keys);
}

/** Return the newest known keys of the alias's chain, otherwise the shipped ones. @returns {Promise<KnownKeys | null>} */
async function knownKeys(/** @type {Opening} */ { store, verify }, /** @type {string} */ alias, /** @type {Uint8Array | null} */ shipped) {
  const kept = await store.aliasKeys(alias), own = !kept && shipped && (await shippedKeys(shipped, verify));
  return kept || (own && ((own.chain && (await store.get("keys", own.chain))) || own)) || null;
}

/**
 * Return the newest keys of the server's chain, which must contain the known keys of this alias and of the chain. All
 * versions are always fetched: a request for only some would reveal which ones this device has.
 */
async function newestKeys(/** @type {Opening} */ opening, /** @type {string} */ alias, /** @type {KnownKeys | null} */ known) {
  const { store, now, verify } = opening, root = known && known.chain;
  const served = await unless(fetchBytes(opening, "/v1/keys/chain", MAX_BYTES), NetworkError, (error) => {
    if (!root) throw error; // otherwise the stored keys are used until they expire
  });
  if (!served) return { chain: /** @type {string} */ (root), keys: await acceptKeys(/** @type {KnownKeys} */ (known).envelope, now, verify) };
  const proven = await proveChain(readChain(served), known, now, verify), { chain, envelope } = proven;
  const kept = await store.aliasKeys(alias);
  if (!kept || !sameBytes(kept.envelope, envelope)) await store.rememberKeys(alias, { chain, envelope }, (others) => requireContains(proven, others));
  return proven;
}

/**
 * Return the stored document of the survey. A document that was stored without a chain is returned only if enough of
 * the publisher's current keys signed it.
 */
async function recall(/** @type {Opening} */ opening, /** @type {Keys} */ keys) {
  const { chain, store, link } = opening, old = await store.get("surveys", ["", link.survey]);
  return (await store.get("surveys", [chain, link.survey])) ?? ((await stands(opening, old, keys)) ? old : undefined);
}

/** Return true if enough of the publisher's current keys signed the stored document. @returns {Promise<boolean>} */
const stands = async (/** @type {Opening} */ { verify }, /** @type {Remembered | undefined} */ remembered, /** @type {Keys} */ { publisher }) =>
  remembered !== undefined &&
  unless((async () => requireSigned(readEnvelope(remembered.envelope, SURVEY_TYPE), publisher, verify))().then(Boolean), DocumentRejected, () => false);

const isCached = async (/** @type {Opening} */ opening, /** @type {Remembered | undefined} */ remembered, /** @type {Keys} */ keys) =>
  remembered?.digest === opening.link.digest && stands(opening, remembered, keys);

/** @returns {Promise<Opened>} */
async function withKeys(/** @type {Opening} */ opening, /** @type {Keys} */ keys) {
  const { link, store, chain = "" } = opening, remembered = await recall(opening, keys);
  const path = `/v1/surveys/${link.survey}/document${link.digest ? `?digest=${link.digest}` : ""}`;
  const envelope = (await isCached(opening, remembered, keys))
    ? /** @type {Remembered} */ (remembered).envelope
    : await unless(fetchBytes(opening, path, MAX_ENVELOPE_BYTES), NetworkError, (error) => {
        if (remembered && !link.digest) return remembered.envelope;
        throw error;
      });
  const keepEvidence = async () => {
    const other = await digestOf(readEnvelope(envelope, SURVEY_TYPE).payload);
    if (remembered && other !== remembered.digest) await store.keepEvidence(chain, [[remembered.digest, remembered.envelope], [other, envelope]]);
  };
  const { survey, level, signedBy, logged, withdrawn } = await unless(accept(opening, envelope, remembered, keys), Equivocation, async (error) => {
    await keepEvidence();
    throw error;
  });
  if (withdrawn && withdrawn !== survey.digest) await keepEvidence();
  if (!remembered || !sameBytes(remembered.envelope, envelope))
    await store.remember(chain, link.survey, { version: survey.version, digest: survey.digest, envelope }, withdrawn);
  return { survey, level, chain, signedBy, trust: { pinned: link.digest !== null, logged } };
}

/** Check the bytes of an envelope by steps (1) to (9). */
export async function accept(
  /** @type {Opening} */ opening, /** @type {Uint8Array} */ data, /** @type {Remembered | undefined} */ remembered, /** @type {Keys} */ keys,
) {
  const { link, now, verify } = opening;
  const envelope = readEnvelope(data, SURVEY_TYPE); // (1) (2)
  const signedBy = await requireSigned(envelope, keys.publisher, verify); // (3)
  const digest = await digestOf(envelope.payload), steps = opening.check(envelope.payload, digest);
  try {
    /** @type {Survey} */
    const survey = (await steps.next()).value, { version } = survey; // (4) (5)
    if (survey.survey !== link.survey) throw new DocumentRejected("pin", "survey", "other_survey");
    requireCollector(survey.collectUrl, link.origin, opening.collectHosts);
    requireWindow(survey, now); // (6)
    const binding = (await stands(opening, remembered, keys)) && remembered;
    if (binding && version < binding.version) throw new RollbackDetected("version", "rollback", version, binding.version); // (7)
    if (binding && version === binding.version && digest !== binding.digest) throw new Equivocation("version", "equivocation", version);
    if (link.digest && digest !== link.digest) throw new DocumentRejected("pin", "digest", "other_digest", link.digest, digest); // (8)
    const logged = await isLogged(opening, keys, digest); // (8)
    /** @type {import("./ledger.js").ReportLevel} */
    const level = (await steps.next()).value; // (9)
    return { survey, level, signedBy, logged, withdrawn: remembered && !binding ? remembered.digest : null };
  } finally {
    await steps.return(); // the worker's reply is not awaited any more
  }
}

/** Return true if a witnessed log contains the document, false if no log is consulted; throws otherwise. */
async function isLogged(/** @type {Opening} */ opening, /** @type {Keys} */ { log }, /** @type {string} */ digest) {
  if (!opening.wantsLog || !log?.witnesses.length) return false;
  const { requireLogged } = await part(() => import("./log.js")); // most links are pinned, so most pages never load log.js
  await requireLogged(digest, digest === opening.link.digest, {
    ...opening, role: log, fetch: (/** @type {[string, number, string]} */ ...asked) => fetchBytes(opening, ...asked),
  });
  return true;
}
