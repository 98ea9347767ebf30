// SPDX-License-Identifier: Apache-2.0
/** Getting a survey: from memory if this install has it, otherwise from the server, always through every check. */

import { MAX_BYTES, digestOf, sameBytes } from "./canonical.js";
import { readSurvey, requireAllPrivate, requireWindow } from "./documents.js";
import { MAX_ENVELOPE_BYTES, SURVEY_TYPE, readEnvelope, requireSigned } from "./dsse.js";
import { DocumentRejected, Equivocation, NetworkError, RollbackDetected, part, unless } from "./errors.js";
import { acceptKeys, walk } from "./keys.js";
import { requireSecure } from "./link.js";

/**
 * @typedef {import("./documents.js").Survey} Survey
 * @typedef {{survey: Survey, signedBy: string[], trust: {pinned: boolean, logged: boolean}}} Opened
 * @typedef {{version: number, digest: string, envelope: Uint8Array}} Remembered
 * @typedef {{link: import("./link.js").SurveyLink, store: import("./store.js").Store, transport: import("./transport.js").Transport,
 *   now: number, verify: import("./dsse.js").Verify, wantsLog: boolean}} Opening
 * @typedef {import("./keys.js").Keys} Keys
 */

const KEYS_BYTES = 256 * 2 ** 10;

async function fetchBytes(/** @type {Opening} */ { transport, link }, /** @type {string} */ path, /** @type {number} */ most, expected = "application/json") {
  const { status, type, body } = await transport.exchange(link.origin + path, null, most);
  if (status === 404) throw new NetworkError("not_found");
  if (status !== 200) throw new NetworkError("status", "status", status);
  if (type !== expected) throw new NetworkError("not_json");
  return body;
}

/** The survey that the link names; `shipped` is the keys document that came with the app. @returns {Promise<Opened>} */
export async function openSurvey(/** @type {Opening} */ opening, /** @type {Uint8Array | null} */ shipped) {
  const { link, store, now, verify } = opening;
  const chain = shipped ? `${link.origin}#${await digestOf(shipped)}` : link.origin;
  const known = (await store.get("keys", chain)) ?? shipped;
  const remembered = await store.get("surveys", link.survey);
  const trusted = known && (await unless(acceptKeys(known, known, now, verify), DocumentRejected, () => null));
  if (trusted && (await isCached(opening, remembered, trusted))) return withKeys(opening, remembered, trusted);
  const newest = await unless(fetchBytes(opening, "/v1/keys", KEYS_BYTES), NetworkError, (error) => {
    if (known) return known; // out of reach: those at hand count as long as they last
    throw error;
  });
  const keys = await walk(newest, known, async (read) => read(await fetchBytes(opening, "/v1/keys/chain", MAX_BYTES)), now, verify);
  if (newest !== known) await store.rememberKeys(chain, newest, known);
  return withKeys(opening, remembered, keys);
}

/** Whether the publisher's present keys signed what is remembered. @returns {Promise<boolean>} */
const stands = async (/** @type {Opening} */ { verify }, /** @type {Remembered | undefined} */ remembered, /** @type {Keys} */ { publisher }) =>
  remembered !== undefined &&
  unless((async () => requireSigned(readEnvelope(remembered.envelope, SURVEY_TYPE), publisher, verify))().then(Boolean), DocumentRejected, () => false);

const isCached = async (/** @type {Opening} */ opening, /** @type {Remembered | undefined} */ remembered, /** @type {Keys} */ keys) =>
  remembered?.digest === opening.link.digest && stands(opening, remembered, keys);

/** @returns {Promise<Opened>} */
async function withKeys(/** @type {Opening} */ opening, /** @type {Remembered | undefined} */ remembered, /** @type {Keys} */ keys) {
  const { link, store } = opening;
  const path = `/v1/surveys/${link.survey}/document${link.digest ? `?digest=${link.digest}` : ""}`;
  const envelope = (await isCached(opening, remembered, keys))
    ? /** @type {Remembered} */ (remembered).envelope
    : await unless(fetchBytes(opening, path, MAX_ENVELOPE_BYTES), NetworkError, (error) => {
        if (remembered && !link.digest) return remembered.envelope;
        throw error;
      });
  const keepEvidence = async () => {
    const other = await digestOf(readEnvelope(envelope, SURVEY_TYPE).payload);
    if (remembered && other !== remembered.digest) await store.keepEvidence([[remembered.digest, remembered.envelope], [other, envelope]]);
  };
  const { survey, signedBy, logged, withdrawn } = await unless(accept(opening, envelope, remembered, keys), Equivocation, async (error) => {
    await keepEvidence();
    throw error;
  });
  if (withdrawn && withdrawn !== survey.digest) await keepEvidence();
  if (!remembered || !sameBytes(remembered.envelope, envelope))
    await store.remember(link.survey, { version: survey.version, digest: survey.digest, envelope }, withdrawn);
  return { survey, signedBy, trust: { pinned: link.digest !== null, logged } };
}

/** Steps (1) to (9) for the bytes of an envelope. */
export async function accept(
  /** @type {Opening} */ opening, /** @type {Uint8Array} */ data, /** @type {Remembered | undefined} */ remembered, /** @type {Keys} */ keys,
) {
  const { link, now, verify } = opening;
  const envelope = readEnvelope(data, SURVEY_TYPE); // (1) (2)
  const signedBy = await requireSigned(envelope, keys.publisher, verify); // (3)
  const digest = await digestOf(envelope.payload);
  const survey = readSurvey(envelope.payload, digest), { version } = survey; // (4) (5)
  if (survey.survey !== link.survey) throw new DocumentRejected("pin", "survey", "other_survey");
  requireSecure(survey.collectUrl, "collect_url");
  requireWindow(survey, now); // (6)
  const binding = (await stands(opening, remembered, keys)) && remembered;
  if (binding && version < binding.version) throw new RollbackDetected("version", "rollback", version, binding.version); // (7)
  if (binding && version === binding.version && digest !== binding.digest) throw new Equivocation("version", "equivocation", version);
  if (link.digest && digest !== link.digest) throw new DocumentRejected("pin", "digest", "other_digest", link.digest, digest); // (8)
  const logged = await isLogged(opening, keys, digest); // (8)
  await requireAllPrivate(survey, envelope.payload); // (9)
  return { survey, signedBy, logged, withdrawn: remembered && !binding ? remembered.digest : null };
}

/** Whether a watched log vouches for the document; raises if the app wants it and the log does not. */
async function isLogged(/** @type {Opening} */ opening, /** @type {Keys} */ { log }, /** @type {string} */ digest) {
  if (!opening.wantsLog || !log?.witnesses.length) return false;
  const { requireLogged } = await part(() => import("./log.js")); // most pages pin, and never load it
  await requireLogged(digest, digest === opening.link.digest, {
    ...opening, role: log, fetch: (/** @type {[string, number, string]} */ ...asked) => fetchBytes(opening, ...asked),
  });
  return true;
}
