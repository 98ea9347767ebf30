// SPDX-License-Identifier: Apache-2.0
/** HTTP transport without cookies, referrer or redirects; every response is bounded in size and time. */

import { NetworkError } from "./errors.js";
import { requireSecure } from "./link.js";

/** @typedef {{status: number, type: string, retryAfter: string | null, body: Uint8Array}} Reply */

const OVERALL_MS = 30_000;

export class Transport {
  /** relay: address of a reverse proxy through which all requests go. */
  constructor(/** @type {typeof fetch} */ fetcher = (...request) => fetch(...request), /** @type {string | null} */ relay = null) {
    this.fetcher = fetcher;
    this.relay = relay && requireSecure(relay, "relay").href.replace(/\/+$/, "");
  }

  /** Return the options of a request. @returns {RequestInit} */
  #options(/** @type {Uint8Array | null} */ body) {
    /** @type {RequestInit} */
    const common = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "manual", cache: "no-store", mode: "cors" };
    if (!body) return common;
    const headers = { "Content-Type": "application/json" };
    // With `keepalive`, a report is sent even if the page is closed; browsers allow at most 64 KiB in total.
    return { ...common, method: "POST", headers, body: /** @type {BufferSource} */ (body), keepalive: body.length < 2 ** 15 };
  }

  #address(/** @type {string} */ url) {
    const { pathname, search, href } = requireSecure(url, "collect_url");
    return this.relay ? this.relay + pathname + search : href;
  }

  /** Send without waiting for a reply, for a page that is being closed. */
  push(/** @type {string} */ url, /** @type {Uint8Array} */ body) {
    this.fetcher(this.#address(url), this.#options(body)).catch(() => undefined);
  }

  /** Send one request and return the reply; throws NetworkError if there is no usable reply. @returns {Promise<Reply>} */
  async exchange(/** @type {string} */ url, /** @type {Uint8Array | null} */ body, /** @type {number} */ most) {
    const address = this.#address(url), giveUp = new AbortController();
    const timer = setTimeout(() => giveUp.abort(), OVERALL_MS);
    try {
      const reply = await this.fetcher(address, { ...this.#options(body), signal: giveUp.signal });
      if (reply.type === "opaqueredirect" || (reply.status >= 300 && reply.status < 400))
        throw new NetworkError("redirect");
      const type = (reply.headers.get("Content-Type") ?? "").split(";")[0].trim().toLowerCase();
      return { status: reply.status, type, retryAfter: reply.headers.get("Retry-After"), body: await read(reply, most) };
    } catch (error) {
      if (error instanceof NetworkError) throw error;
      throw new NetworkError(giveUp.signal.aborted ? "limit" : "network");
    } finally {
      clearTimeout(timer);
    }
  }
}

async function read(/** @type {Response} */ reply, /** @type {number} */ most) {
  const parts = [], reader = reply.body?.getReader();
  let size = 0;
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    parts.push(part.value);
    size += part.value.length;
    if (size > most) {
      reader?.cancel().catch(() => undefined);
      throw new NetworkError("limit");
    }
  }
  const whole = new Uint8Array(size);
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}
