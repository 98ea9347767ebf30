// SPDX-License-Identifier: Apache-2.0
/** Getting a survey: from memory if this install has it, otherwise from the server, always through every check. */

import { MAX_BYTES, digestOf } from "./canonical.js";
import { readSurvey, requireAllPrivate, requireWindow } from "./documents.js";
import { MAX_ENVELOPE_BYTES, SURVEY_TYPE, readEnvelope, requireSigned } from "./dsse.js";
import { DocumentRejected, Equivocation, NetworkError, RollbackDetected, part } from "./errors.js";
import { acceptKeys, readChain, walk } from "./keys.js";
import { requireSecure } from "./link.js";

/**
 * @typedef {import("./documents.js").Survey} Survey
 * @typedef {{survey: Survey, signedBy: string[], pinned: boolean, logged: boolean}} Opened
 * @typedef {{version: number, digest: string, envelope: Uint8Array}} Remembered
 * @typedef {{link: import("./link.js").SurveyLink, store: import("./store.js").Store, transport: import("./transport.js").Transport,
 *   now: number, verify: import("./dsse.js").Verify, wantsLog: boolean}} Opening
 */

const KEYS_BYTES = 256 * 2 ** 10;

async function fetchBytes(/** @type {Opening} */ { transport }, /** @type {string} */ url, /** @type {number} */ most, type = "application/json") {
  const reply = await transport.exchange(url, null, most);
  if (reply.status === 404) throw new NetworkError("the server does not know this survey; check that the link is whole", "not_found");
  if (reply.status !== 200) throw new NetworkError(`the server answered with status ${reply.status}; try again later`, "status");
  if (reply.type !== type) throw new NetworkError("what answered was not the survey's server: check the network's log-in page", "not_json");
  return reply.body;
}

/** What `work` gives, or what `otherwise` gives for errors of the kind named. */
const unless = (/** @type {Promise<any>} */ work, /** @type {any} */ kind, /** @type {(error: any) => any} */ otherwise) =>
  work.catch((error) => {
    if (error instanceof kind) return otherwise(error);
    throw error;
  });

/** The survey that the link names; `shipped` is the keys document that came with the app. @returns {Promise<Opened>} */
export async function openSurvey(/** @type {Opening} */ opening, /** @type {Uint8Array | null} */ shipped) {
  const { link, store, now, verify } = opening;
  const chain = shipped ? `${link.origin}#${await digestOf(shipped)}` : link.origin;
  const known = (await store.get("keys", chain)) ?? shipped;
  const remembered = await store.get("surveys", link.survey);
  const trusted = known && (await unless(acceptKeys(known, known, now, verify), DocumentRejected, () => null));
  if (trusted && (await isCached(opening, remembered, trusted))) return withKeys(opening, remembered, trusted);
  const url = `${link.origin}/v1/keys`;
  const newest = await unless(fetchBytes(opening, url, KEYS_BYTES), NetworkError, (error) => {
    if (known) return known; // out of reach: those at hand count as long as they last
    throw error;
  });
  const keys = await walk(newest, known, async () => readChain(await fetchBytes(opening, `${url}/chain`, MAX_BYTES)), now, verify);
  if (newest !== known) await store.rememberKeys(chain, newest, known);
  return withKeys(opening, remembered, keys);
}

/** Whether the publisher's present keys signed what is remembered. */
const stands = (/** @type {Remembered} */ { envelope }, /** @type {import("./dsse.js").Role} */ publisher, /** @type {import("./dsse.js").Verify} */ verify) =>
  unless((async () => requireSigned(readEnvelope(envelope, SURVEY_TYPE), publisher, verify))().then(Boolean), DocumentRejected, () => false);

const isCached = async (/** @type {Opening} */ { link, verify }, /** @type {Remembered | undefined} */ remembered, /** @type {import("./keys.js").Keys} */ keys) =>
  remembered !== undefined && remembered.digest === link.digest && (await stands(remembered, keys.publisher, verify));

/** @returns {Promise<Opened>} */
async function withKeys(/** @type {Opening} */ opening, /** @type {Remembered | undefined} */ remembered, /** @type {import("./keys.js").Keys} */ keys) {
  const { link, store } = opening;
  const url = `${link.origin}/v1/surveys/${link.survey}/document${link.digest ? `?digest=${link.digest}` : ""}`;
  const envelope = remembered && (await isCached(opening, remembered, keys))
    ? remembered.envelope
    : await unless(fetchBytes(opening, url, MAX_ENVELOPE_BYTES), NetworkError, (error) => {
        if (remembered && !link.digest) return remembered.envelope;
        throw error;
      });
  let found;
  try {
    found = await accept(opening, envelope, remembered, keys);
  } catch (error) {
    if (error instanceof Equivocation) await keepEvidence(store, remembered, envelope);
    throw error;
  }
  const { survey, withdrawn } = found;
  if (withdrawn && withdrawn !== survey.digest) await keepEvidence(store, remembered, envelope);
  if (remembered?.envelope.join() !== envelope.join())
    await store.remember(link.survey, { version: survey.version, digest: survey.digest, envelope }, withdrawn);
  return { survey, signedBy: found.signedBy, pinned: link.digest !== null, logged: found.logged };
}

/** Steps (1) to (9) for the bytes of an envelope. */
export async function accept(
  /** @type {Opening} */ opening, /** @type {Uint8Array} */ data, /** @type {Remembered | undefined} */ remembered, /** @type {import("./keys.js").Keys} */ keys,
) {
  const { link, now, verify } = opening;
  const envelope = readEnvelope(data, SURVEY_TYPE); // (1) (2)
  const signedBy = await requireSigned(envelope, keys.publisher, verify); // (3)
  const digest = await digestOf(envelope.payload);
  const survey = readSurvey(envelope.payload, digest); // (4) (5)
  if (survey.survey !== link.survey) throw new DocumentRejected("pin", "this is another survey's document", "survey");
  requireSecure(survey.collectUrl, "collect_url");
  requireWindow(survey, now); // (6)
  const binds = remembered !== undefined && (await stands(remembered, keys.publisher, verify));
  if (binds && survey.version < remembered.version) // (7)
    throw new RollbackDetected(`version ${survey.version} is older than version ${remembered.version}, seen before`);
  if (binds && survey.version === remembered.version && digest !== remembered.digest)
    throw new Equivocation(`version ${survey.version} has been seen here with other content`);
  if (link.digest && digest !== link.digest) // (8)
    throw new DocumentRejected("pin", `the link pins ${link.digest}, the server sent ${digest}`, "digest");
  const logged = await isLogged(opening, keys, digest); // (8)
  await requireAllPrivate(survey); // (9)
  return { survey, signedBy, logged, withdrawn: remembered && !binds ? remembered.digest : null };
}

/** Whether a watched log vouches for the document; raises if the app wants it and the log does not. */
async function isLogged(/** @type {Opening} */ opening, /** @type {import("./keys.js").Keys} */ keys, /** @type {string} */ digest) {
  const { link, store, now, verify, wantsLog } = opening;
  if (!wantsLog || !keys.log?.witnesses.length) return false;
  const { requireLogged } = await part(() => import("./log.js")); // most pages pin, and never load it
  await requireLogged(digest, digest === link.digest, {
    role: keys.log, store, now, verify,
    fetch: (/** @type {string} */ path, /** @type {number} */ most, /** @type {string} */ type) => fetchBytes(opening, link.origin + path, most, type),
  });
  return true;
}

async function keepEvidence(/** @type {import("./store.js").Store} */ store, /** @type {Remembered | undefined} */ remembered, /** @type {Uint8Array} */ data) {
  if (!remembered) return;
  const other = await digestOf(readEnvelope(data, SURVEY_TYPE).payload);
  if (other !== remembered.digest) await store.keepEvidence([[remembered.digest, remembered.envelope], [other, data]]);
}
