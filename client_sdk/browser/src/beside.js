// SPDX-License-Identifier: Apache-2.0
/** Verification of a survey in a worker, so that the page stays responsive (docs/browser.md). */

import { DocumentRejected, NetworkError, UnsupportedDocument, part } from "./errors.js";
import { kinds } from "./mechanisms.js";
import { loadParts } from "./parts.js";

const PATIENCE_MS = 30_000; // time limit for loading a part
/** @type {any} */
let policy;

/** Return a worker address as a TrustedScriptURL, for pages that require trusted types; the policy allows no other. */
function trusted(/** @type {string} */ address) {
  policy ??= /** @type {any} */ (globalThis).trustedTypes?.createPolicy("frankly", { createScriptURL: () => address });
  return policy?.createScriptURL("") ?? address;
}

/** The page's worker; it stays, so that a page that is open can verify surveys without a network. @type {Worker | undefined} */
let running;

/**
 * Return the running worker; undefined if the browser or the page's policy allows none, or the SDK is from another origin.
 * Bundlers find and bundle a worker only by exactly this expression with the global `Worker`, which does not allow a trusted
 * address; therefore `Worker` is another class while the expression runs, which is synchronous.
 */
function worker() {
  const { Worker: Native } = globalThis;
  if (running || !Native) return running;
  try {
    globalThis.Worker = /** @type {any} */ (class { // not derived from `Native`, which other scripts may have bound or wrapped
      constructor(/** @type {any} */ address, /** @type {WorkerOptions | undefined} */ options) {
        return new Native(trusted(address.href ?? address), options);
      }
    });
    try {
      running = new Worker(new URL("./verifier.js", import.meta.url), { type: "module", name: "frankly-verifier" });
    } finally {
      globalThis.Worker = Native;
    }
  } catch {
    // no worker, or the page has frozen its globals
  }
  return running;
}

/** End a worker that does not work; the next survey starts another one. */
function end(/** @type {Worker} */ broken) {
  broken.terminate();
  if (running === broken) running = undefined;
}

/** Return the error that a worker reports. */
const refusal = (/** @type {[string, string | null, string, ...any]} */ [reason, ...said]) => (reason ? new DocumentRejected(reason, ...said) : new UnsupportedDocument(...said));

/** Return a survey that a worker read, with its mechanisms; it needs the same parts in the page. */
async function revived(/** @type {any} */ survey) {
  await loadParts(survey.parts);
  return { ...survey, blocks: survey.blocks.map((/** @type {any} */ block) => ({ ...block, mechanism: kinds()[block.parameters.kind].read(block.parameters, "") })) };
}

/**
 * Yield what `check` in verifier.js yields, from a worker. If no worker can run, `check` runs in the page: the results are the
 * same, but the page may freeze. Throws NetworkError if the worker does not answer in time.
 * @type {typeof import("./verifier.js").check}
 */
export async function* checkBeside(...given) {
  const beside = worker();
  let steps = 0;
  if (beside) {
    /** Replies that have not been read; null if the worker cannot verify. @type {({value?: any, error?: Error} | null)[]} */
    const replies = [];
    let wake = () => {};
    const reply = (/** @type {(typeof replies)[number]} */ one) => {
      replies.push(one);
      wake();
    };
    const { port1: here, port2: there } = new MessageChannel();
    const fail = (/** @type {(typeof replies)[number]} */ one) => {
      end(beside);
      reply(one);
    };
    const cannotRun = () => fail(null);
    const timer = setTimeout(fail, PATIENCE_MS, { error: new NetworkError("limit", "no_part") });
    here.onmessage = ({ data }) => reply(data?.refused ? { error: refusal(data.refused) } : data);
    beside.addEventListener("error", cannotRun);
    try {
      beside.postMessage({ port: there, given }, [there]);
      for (; steps < 2; steps++) {
        if (!replies.length) await new Promise((done) => (wake = () => done(undefined)));
        const next = replies.shift();
        if (!next) break;
        if (next.error) throw next.error;
        yield steps ? next.value : revived(next.value);
      }
    } finally {
      clearTimeout(timer);
      here.close();
      beside.removeEventListener("error", cannotRun);
    }
    if (steps === 2) return;
  }
  const { check } = await part(() => import("./verifier.js"));
  let done = 0;
  for await (const value of check(...given)) if (done++ >= steps) yield value;
}
