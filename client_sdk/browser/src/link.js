// SPDX-License-Identifier: Apache-2.0
/** Survey links: `https://host/s/ID#sha256=DIGEST`; the fragment pins the exact document (step 8). */

import { DocumentRejected, InsecureTransport, LinkError } from "./errors.js";

/** `source`: where the person comes from; `invite`: the code of a personal link. @typedef {{origin: string, survey: string, digest: string | null, source: string | null, invite: string | null}} SurveyLink */

/** Read a link; a panel's id in it is for the hosted page alone. Throws LinkError, or InsecureTransport for an http:// address of another machine. @returns {SurveyLink} */
export function readLink(/** @type {string} */ text) {
  const url = requireSecure(text);
  const path = /^\/s\/([0-9a-f]{32})$/.exec(url.pathname), pin = /^#sha256=([0-9a-f]{64})(?:&source=([a-z0-9][a-z0-9_-]{0,63}))?(?:&invite=([0-9A-Za-z-]{16,19}))?(?:&id=(?!\.\.?$)[\w.~-]{1,128})?$/.exec(url.hash);
  if (!path || url.search || (url.hash && !pin)) throw new LinkError("link", "link_form");
  return { origin: url.origin, survey: path[1], digest: pin && `sha256:${pin[1]}`, source: pin?.[2] ?? null, invite: pin?.[3] ?? null };
}

const isThisMachine = (/** @type {URL} */ { hostname }) => /^(localhost|\[::1]|127(\.\d{1,3}){3})$/.test(hostname);

/**
 * Throw unless reports go to the host of the link or to one that the app allows. Without this check, a document could
 * make devices post to any service that they can reach. A loopback address is accepted only if the link is loopback too.
 */
export function requireCollector(/** @type {string} */ address, /** @type {string} */ origin, /** @type {string[]} */ allowed = []) {
  const url = requireSecure(address, "collect_url"), own = new URL(origin);
  if (isThisMachine(url)) {
    if (!isThisMachine(own)) throw new InsecureTransport("collect_url", "own_machine");
  } else if (url.hostname !== own.hostname && !allowed.includes(url.hostname))
    throw new DocumentRejected("host", "collect_url", "other_host", url.hostname, own.hostname);
}

/** Return the parsed address; throws unless it is https, or http to this machine itself. */
export function requireSecure(/** @type {string} */ text, field = "link") {
  const isWeb = /^\s*https?:\/\/[^/\\?#]/i.test(text); // the class URL would also accept https:host and https:\\host
  let url;
  try {
    url = new URL(text);
  } catch {
    throw isWeb ? new LinkError(field, "link_form") : new InsecureTransport(field, "not_https");
  }
  if (/^[^/\\?#]*\/\/[^/\\?#]*@/.test(text)) throw new LinkError(field, "link_user");
  if (!isWeb || !(url.protocol === "https:" || (url.protocol === "http:" && isThisMachine(url)))) throw new InsecureTransport(field, "not_https");
  return url;
}
