// SPDX-License-Identifier: Apache-2.0
/** Sending sealed bytes until somebody acknowledges them: the same bytes every time (docs/protocol.md §7). */

import { parse } from "./canonical.js";
import { FranklyError, LinkError, NetworkError, StoreError } from "./errors.js";

/**
 * @typedef {import("./store.js").Sealed} Sealed
 * @typedef {{status: "sent" | "queued" | "refused" | "disabled", code: string, detail: string}} Receipt
 * @typedef {{sleep: (ms: number) => Promise<void>, timer: () => number}} Time
 */

const FIRST_WAIT = 500, LONGEST_WAIT = 3_600_000, LONGEST_RETRY_AFTER = 86_400, RECEIPT_BYTES = 64 * 2 ** 10;
const AGAIN = [408, 425, 429];
const LATER = "the server cannot take the answer right now; it will be sent again";
const STRANGER = "what answered was not the survey's server; the answer will be sent again";

/** What a server of ours may refuse a report with, by status; the codes of frankly_protocol/problems.py. */
export const PROBLEMS = {
  400: "json_invalid bad_request usage", 401: "token_invalid unauthenticated", 403: "token_foreign forbidden",
  404: "survey_unknown not_found log_unknown", 405: "method_not_allowed", 408: "timed_out",
  409: "too_early id_conflict token_spent prior_small_cells immutable file_exists", 410: "closed", 413: "body_too_large", 415: "content_type",
  422: "field_unknown field_missing field_type y_type eps_not_finite symbol_unknown doc_mismatch strata_invalid eps_out_of_range eps_format " +
    "prior_sum prior_shape prior_value secret_empty choice_unprotected choices_count choices_collide text_characters definition_invalid " +
    "budget_exceeded identity_mechanism optimiser_limit mechanism_not_certified not_identifiable unsupported weights_invalid " +
    "confidence_range counts_invalid targets_invalid cosignature_invalid key_file unsafe_setting",
  429: "too_many", 500: "internal", 503: "unavailable",
};

/** @returns {Receipt} */
const queued = (/** @type {string} */ code, /** @type {string} */ detail) => ({ status: "queued", code, detail });

/** What becomes of a report that is kept as closed, or will be. @returns {Receipt} */
export function closed(/** @type {Sealed | undefined} */ kept) {
  return kept?.state === "refused"
    ? { status: "refused", code: kept.code, detail: "the server refused the first answer for good" }
    : { status: "sent", code: kept?.code || "accepted", detail: "the server has stored the first answer" };
}

export class Delivery {
  /** @type {Map<string, number>} */ #notBefore = new Map();
  /** Sealed by this page and not acknowledged; what a page that goes away pushes out. @type {Map<string, Sealed>} */ #mine = new Map();
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

  /** Draw when a report just sealed leaves, from nothing that it says. */
  schedule(/** @type {Sealed} */ sealed) {
    this.#mine.set(sealed.id, sealed);
    this.#notBefore.set(sealed.id, this.time.timer() + this.spreadMs * uniform());
  }

  /** The page goes away: send what has not left, the same bytes, and wait for nothing. */
  pushAll() {
    for (const { id, url, body } of this.#mine.values()) if (body && !this.#flying.has(id)) this.transport.push(url, body);
  }

  /** Try every sealed report, each at least once unless its server fails to take another one. */
  async flush(/** @type {number} */ timeoutMs) {
    const deadline = this.time.timer() + timeoutMs;
    /** @type {Receipt[]} */
    const receipts = [];
    const unreachable = new Set();
    for (const sealed of await this.store.outbox()) {
      const server = new URL(sealed.url).host;
      if (unreachable.has(server)) {
        receipts.push(queued("network", "the server could not be reached; it will be tried again"));
        continue;
      }
      const receipt = await this.deliver(sealed, Math.max(0, deadline - this.time.timer()));
      receipts.push(receipt);
      if (receipt.status === "queued" && receipt.code !== "too_early" && receipt.code !== "scheduled") unreachable.add(server);
    }
    return receipts;
  }

  /** Send until acknowledged or finally refused, for about `patienceMs`; one tab at a time. */
  async deliver(/** @type {Sealed} */ sealed, /** @type {number} */ patienceMs) {
    const receipt = await this.#alone(patienceMs, async () => {
      const kept = await this.store.answer(sealed.survey, sealed.respondent);
      return kept?.state === "sealed" ? this.#deliver(kept, patienceMs) : closed(kept);
    });
    if (receipt.status !== "queued") {
      this.#mine.delete(sealed.id);
      this.#notBefore.delete(sealed.id);
    }
    this.announce(receipt.status, sealed.survey, receipt);
    return receipt;
  }

  /** Hold the lock that all tabs share; without Web Locks two tabs may send the same bytes, which is harmless. */
  async #alone(/** @type {number} */ patienceMs, /** @type {() => Promise<Receipt>} */ work) {
    const locks = globalThis.navigator?.locks;
    if (!locks) return work();
    try {
      const signal = AbortSignal.timeout(Math.max(patienceMs, 1000));
      return await locks.request(`frankly:${this.store.name}`, { signal }, work);
    } catch (error) {
      if (error instanceof FranklyError) throw error;
      return queued("waiting", "another tab of this page is sending; the answer will be sent later");
    }
  }

  /** @returns {Promise<Receipt>} */
  async #deliver(/** @type {Sealed} */ sealed, /** @type {number} */ patienceMs) {
    let now = this.time.timer(), wait = FIRST_WAIT;
    const deadline = now + patienceMs;
    const asked = (this.#notBefore.get(sealed.url) ?? 0) - now, own = (this.#notBefore.get(sealed.id) ?? 0) - now;
    let pause = Math.max(0, asked, own);
    let receipt = asked >= own
      ? queued("waiting", "the server asked to be left alone for a while; the answer will be sent later")
      : queued("scheduled", "sealed; it leaves at a random moment, so that the time of sending tells nothing");
    while (now + pause <= deadline) {
      if (pause) await this.time.sleep(pause);
      const [result, retryMs] = await this.#once(sealed);
      receipt = result;
      if (receipt.status === "sent" || receipt.status === "refused") {
        // If erasing fails now, the next start sends the same bytes, hears "duplicate" and erases them then.
        await this.store.closeAnswer(sealed, receipt.status, receipt.code).catch((error) => {
          if (!(error instanceof StoreError)) throw error;
        });
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
  async #once(/** @type {Sealed} */ { id, url, body }) {
    if (!body) return [{ status: "refused", code: "erased", detail: "there is nothing left to send" }, 0];
    this.#flying.add(id);
    try {
      const reply = await this.transport.exchange(url, body, RECEIPT_BYTES);
      const wait = /^\d{1,12}$/.test(reply.retryAfter ?? "") ? Math.min(Number(reply.retryAfter), LONGEST_RETRY_AFTER) : 0;
      return [judge(reply, id), wait * 1000];
    } catch (error) {
      if (error instanceof NetworkError) return [queued(error.code, error.detail), 0];
      if (error instanceof LinkError) return [{ status: "refused", code: error.code, detail: error.detail }, 0];
      throw error;
    } finally {
      this.#flying.delete(id);
    }
  }
}

/** Say what an answer means: only what our own server says can make us erase anything. @returns {Receipt} */
export function judge(/** @type {import("./transport.js").Reply} */ { status, body }, /** @type {string} */ id) {
  const found = parse(body, RECEIPT_BYTES), said = found && typeof found === "object" ? found : {};
  if ((status === 200 || status === 201) && said.id === id && (said.status === "accepted" || said.status === "duplicate"))
    return { status: "sent", code: said.status, detail: "the server has stored the randomised answer" };
  if (status < 300) return queued("no_receipt", STRANGER);
  const known = (/** @type {Record<number, string>} */ (PROBLEMS)[status] ?? "").split(" ").includes(said.code);
  const busy = AGAIN.includes(status) || status >= 500;
  if (!known) return queued(`http_${status}`, busy ? LATER : STRANGER);
  if (busy || said.code === "too_early") return queued(said.code, LATER);
  return { status: "refused", code: said.code, detail: said.code === "closed" ? "the survey has closed; the randomised answer was erased" : "the server refused the report for good" };
}

/** Evenly from [0, 1); no noise comes from here: what is sent was drawn and sealed before. */
function uniform() {
  try {
    return crypto.getRandomValues(new Uint32Array(1))[0] / 2 ** 32;
  } catch {
    return 0.5;
  }
}
