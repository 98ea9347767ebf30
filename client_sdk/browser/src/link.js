// SPDX-License-Identifier: Apache-2.0
/** Survey links: `https://host/s/ID#sha256=DIGEST`; the fragment pins the exact document (step 8). */

import { DocumentRejected, InsecureTransport, LinkError } from "./errors.js";

/** @typedef {{origin: string, survey: string, digest: string | null}} SurveyLink */

/** Read a link; LinkError, or InsecureTransport for http:// to anything but this machine. @returns {SurveyLink} */
export function readLink(/** @type {string} */ text) {
  const url = requireSecure(text);
  const path = /^\/s\/([0-9a-f]{32})$/.exec(url.pathname), pin = /^#sha256=([0-9a-f]{64})$/.exec(url.hash);
  if (!path || url.search || (url.hash && !pin)) throw new LinkError("link", "link_form");
  return { origin: url.origin, survey: path[1], digest: pin && `sha256:${pin[1]}` };
}

const isThisMachine = (/** @type {URL} */ { hostname }) => /^(localhost|\[::1]|127(\.\d{1,3}){3})$/.test(hostname);

/**
 * Refuse an address for reports on any host but the link's, or one that the app names: a document could send them to
 * any service that the device reaches. This machine accepts them only for a link to itself, by any of its names.
 */
export function requireCollector(/** @type {string} */ address, /** @type {string} */ origin, /** @type {string[]} */ allowed = []) {
  const url = requireSecure(address, "collect_url"), own = new URL(origin);
  if (isThisMachine(url)) {
    if (!isThisMachine(own)) throw new InsecureTransport("collect_url", "own_machine");
  } else if (url.hostname !== own.hostname && !allowed.includes(url.hostname))
    throw new DocumentRejected("host", "collect_url", "other_host", url.hostname, own.hostname);
}

/** The address, if it is https, or http to this machine itself. */
export function requireSecure(/** @type {string} */ text, field = "link") {
  const isWeb = /^\s*https?:\/\/[^/\\?#]/i.test(text); // URL reads more into a text than is there: https:host, https:\\host
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
