// SPDX-License-Identifier: Apache-2.0
/** Delivery of sealed reports; every attempt sends the same bytes (docs/protocol.md §7). */

import { parse } from "./canonical.js";
import { FranklyError, LinkError, NetworkError, StoreError, describe, unless } from "./errors.js";
import { codeOf, isFinal } from "./problems.js";
import { CLOCK_SKEW } from "./survey.js";

/**
 * @typedef {import("./store.js").Sealed} Sealed
 * @typedef {{status: "sent" | "queued" | "refused" | "disabled", code: string, detail: string}} Receipt
 * @typedef {{sleep: (ms: number) => Promise<void>, timer: () => number, now: () => number}} Time
 */

const CLOSING = 10_000, FIRST_WAIT = 500, LONGEST_WAIT = 3_600_000, LONGEST_RETRY_AFTER = 86_400, RECEIPT_BYTES = 64 * 2 ** 10;
const AGAIN = [408, 425, 429];
// Codes of queued reports that affect all reports to the server, and those that affect no other; any further code affects the reports of the survey.
const OF_SERVER = /^(network|limit|redirect|waiting|no_receipt|too_many|timed_out|internal|unavailable|http_(5..|408|425|429))$/;
const OF_REPORT = /^(too_early|doc_mismatch|link|scheduled|json_invalid|number_not_finite|field_unknown|field_missing|field_type|y_type)$/;

/** @returns {Receipt} */
export const receiptOf = (/** @type {Receipt["status"]} */ status, /** @type {string} */ code, /** @type {import("./errors.js").Said} */ ...said) =>
  ({ status, code, detail: describe(...said) });
const queued = (/** @type {string} */ code, key = code) => receiptOf("queued", code, key);

/** Return the receipt of a stored answer that has been sent or refused. */
export const closed = (/** @type {Sealed | undefined} */ kept) =>
  kept?.state === "refused" ? receiptOf("refused", kept.code, "first_refused") : receiptOf("sent", kept?.code || "accepted", "first_stored");

export class Delivery {
  /** @type {Map<string, number>} */ #notBefore = new Map();
  /** Reports that this page has sealed and that are not yet acknowledged; `pushAll` sends them when the page is closed. @type {Map<string, Sealed>} */ #mine = new Map();
  /** @type {Set<string>} */ #flying = new Set();

  constructor(
    /** @type {import("./transport.js").Transport} */ transport, /** @type {import("./store.js").Store} */ store, /** @type {Time} */ time,
    /** @type {(name: string, survey: string, receipt?: Receipt) => void} */ announce, spreadMs = 0,
  ) {
    this.transport = transport;
    this.store = store;
    this.time = time;
    this.announce = announce;
    this.spreadMs = spreadMs;
  }

  /** Draw the time at which a newly sealed report is sent, independently of its content. */
  schedule(/** @type {Sealed} */ sealed) {
    this.#mine.set(sealed.id, sealed);
    const left = (sealed.closes ?? Infinity) - this.time.now() - CLOSING; // a report that arrives after the close is refused
    this.#notBefore.set(sealed.id, this.time.timer() + Math.max(0, Math.min(this.spreadMs, left)) * uniform());
  }

  /** Return the milliseconds until a report's random time, 0 if it has passed or has none. */
  spreadLeft(/** @type {Sealed} */ { id }) {
    return Math.max(0, (this.#notBefore.get(id) ?? 0) - this.time.timer());
  }

  /** Return the milliseconds until the next random time of a report; one that has passed counts as `passed`. */
  soonest(/** @type {number} */ passed) {
    return Math.min(...[...this.#mine.values()].map((sealed) => this.spreadLeft(sealed) || passed));
  }

  /** Send the page's unsent reports, or those that wait for their random time, the same bytes, without waiting for replies, because the page is being closed. */
  pushAll(isWaiting = false) {
    for (const sealed of this.#mine.values()) {
      const { id, url, body } = sealed;
      if (body && !this.#flying.has(id) && (!isWaiting || this.spreadLeft(sealed))) this.transport.push(url, body);
    }
  }

  /** Announce the page's reports that another tab has delivered. */
  async #settle() {
    for (const sealed of [...this.#mine.values()]) {
      const kept = await this.store.kept(sealed);
      if (!kept || kept.state === "sealed") continue;
      this.#forget(sealed);
      this.announce(kept.state, sealed.survey, closed(kept));
    }
  }

  #forget(/** @type {Sealed} */ { id }) {
    this.#mine.delete(id);
    this.#notBefore.delete(id);
  }

  /** Try every sealed report; if a server fails to accept one, the other reports to it, or of its survey, are skipped. */
  async flush(/** @type {number} */ timeoutMs) {
    const deadline = this.time.timer() + timeoutMs;
    await this.#settle();
    /** @type {Receipt[]} */
    const receipts = [];
    const unreachable = new Set();
    // In a new random order each time: otherwise a report that a server always fails on would come before the same others.
    for (const [sealed] of (await this.store.outbox()).map((one) => /** @type {[Sealed, number]} */ ([one, uniform()])).sort(([, a], [, b]) => a - b)) {
      const server = new URL(sealed.url).host;
      if (unreachable.has(server) || unreachable.has(sealed.url)) {
        receipts.push(queued("network"));
        continue;
      }
      const receipt = await this.deliver(sealed, Math.max(0, deadline - this.time.timer()));
      receipts.push(receipt);
      if (receipt.status === "queued" && !OF_REPORT.test(receipt.code)) unreachable.add(OF_SERVER.test(receipt.code) ? server : sealed.url);
    }
    return receipts;
  }

  /** Send until acknowledged or finally refused, for about `patienceMs`, in one tab at a time. */
  async deliver(/** @type {Sealed} */ sealed, /** @type {number} */ patienceMs) {
    const receipt = await this.#alone(patienceMs, async () => {
      const kept = await this.store.kept(sealed);
      return kept?.state === "sealed" ? this.#deliver(kept, patienceMs) : closed(kept);
    });
    if (receipt.status !== "queued") this.#forget(sealed);
    this.announce(receipt.status, sealed.survey, receipt);
    return receipt;
  }

  /** Run `work` under the lock that all tabs share; without Web Locks, two tabs may send the same bytes, which is harmless. */
  async #alone(/** @type {number} */ patienceMs, /** @type {() => Promise<Receipt>} */ work) {
    const locks = globalThis.navigator?.locks;
    if (!locks) return work();
    try {
      const signal = AbortSignal.timeout(Math.max(patienceMs, 1000));
      return await locks.request(`frankly:${this.store.name}`, { signal }, work);
    } catch (error) {
      if (error instanceof FranklyError) throw error;
      return queued("waiting", "other_tab");
    }
  }

  /** @returns {Promise<Receipt>} */
  async #deliver(/** @type {Sealed} */ sealed, /** @type {number} */ patienceMs) {
    let now = this.time.timer(), wait = FIRST_WAIT;
    const deadline = now + patienceMs;
    const asked = (this.#notBefore.get(sealed.url) ?? 0) - now, own = (this.#notBefore.get(sealed.id) ?? 0) - now;
    let pause = Math.max(0, asked, own);
    let receipt = asked >= own ? queued("waiting", "left_alone") : queued("scheduled");
    while (now + pause <= deadline) {
      if (pause) await this.time.sleep(pause);
      const [result, retryMs] = await this.#once(sealed);
      receipt = result;
      if (receipt.status === "sent" || receipt.status === "refused") {
        // If erasing fails now, the report is sent again at the next start, which is harmless, and erased then.
        await unless(this.store.closeAnswer(sealed, receipt.status, receipt.code), StoreError, () => undefined);
        break;
      }
      now = this.time.timer();
      if (retryMs) this.#notBefore.set(sealed.url, now + retryMs);
      pause = Math.max(retryMs, wait * (0.5 + uniform()));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
    return receipt;
  }

  /** @returns {Promise<[Receipt, number]>} */
  async #once(/** @type {Sealed} */ { id, url, body, closes }) {
    if (!body) return [receiptOf("refused", "erased", "erased"), 0];
    this.#flying.add(id);
    try {
      const reply = await this.transport.exchange(url, body, RECEIPT_BYTES);
      const wait = /^\d{1,12}$/.test(reply.retryAfter ?? "") ? Math.min(Number(reply.retryAfter), LONGEST_RETRY_AFTER) : 0;
      return [judge(reply, id, closes !== undefined && this.time.now() > closes + CLOCK_SKEW), wait * 1000];
    } catch (error) {
      if (error instanceof NetworkError || error instanceof LinkError) return [receiptOf("queued", error.code, ...error.said), 0];
      throw error;
    } finally {
      this.#flying.delete(id);
    }
  }
}

/**
 * Return the receipt for a reply. A report is erased only after an acknowledgement or a final refusal in the format of the survey's
 * server, or after any other refusal once the survey has closed by its document.
 * @returns {Receipt}
 */
export function judge(/** @type {import("./transport.js").Reply} */ { status, body }, /** @type {string} */ id, /** @type {boolean} */ hasClosed) {
  const said = Object(parse(body, RECEIPT_BYTES));
  if ((status === 200 || status === 201) && said.id === id && (said.status === "accepted" || said.status === "duplicate"))
    return receiptOf("sent", said.status, "stored");
  const code = codeOf(status, said);
  if (isFinal(status, code)) return receiptOf("refused", code, code === "closed" ? "report_late" : "report_refused");
  if (AGAIN.includes(status) || status >= 500 || code === "too_early") return queued(code, "busy");
  if (hasClosed) return receiptOf("refused", "closed", "report_late");
  return queued(code, code === said.code ? "not_now" : "stranger");
}

/** Return a uniform number in [0, 1), for timing only: the noise was drawn and sealed before. */
function uniform() {
  try {
    return crypto.getRandomValues(new Uint32Array(1))[0] / 2 ** 32;
  } catch {
    return 0.5;
  }
}
