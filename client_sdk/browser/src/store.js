// SPDX-License-Identifier: Apache-2.0
/**
 * What one install remembers, in IndexedDB with strict durability. The truth is never written. Transactions that write
 * exclude each other across tabs: whoever comes second finds the first one's report, and no second value is drawn.
 */

import { hex } from "./canonical.js";
import { FranklyError, RandomnessError, StoreError, part } from "./errors.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {{survey: string, respondent: string, digest: string, url: string, id: string, body: Uint8Array | null,
 *   state: "sealed" | "sent" | "refused", code: string, level: Rational | null, ceiling: Rational | null}} Sealed
 * @typedef {{get: (store: string, key: any) => Promise<any>, all: (store: string) => Promise<any[]>,
 *   put: (store: string, value: any, key: any) => Promise<any>}} Door
 * @typedef {{run: <T>(stores: string[], write: boolean, work: (door: Door) => Promise<T>) => Promise<T>, close: () => void}} Backend
 */

const STORES = ["keys", "surveys", "answers", "checkpoints", "proofs", "evidence", "salt"];
const MAX_EVIDENCE = 16;

const unusable = () =>
  new StoreError("this browser keeps nothing for this page (private window, blocked storage, or a full disk); nothing was sent");

/** @returns {Promise<Backend>} */
async function indexedDatabase(/** @type {string} */ name) {
  /** @type {IDBDatabase} */
  const db = await new Promise((resolve, reject) => {
    try {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => STORES.forEach((store) => request.result.createObjectStore(store));
      request.onsuccess = () => resolve(request.result);
      request.onerror = request.onblocked = () => reject(unusable());
    } catch {
      reject(unusable()); // indexedDB is missing, or looking at it is forbidden
    }
  });
  db.onversionchange = () => db.close();
  return {
    close: () => db.close(),
    run: (stores, write, work) =>
      new Promise((resolve, reject) => {
        /** @type {IDBTransaction} */
        let tx;
        try {
          tx = db.transaction(stores, write ? "readwrite" : "readonly", { durability: "strict" });
        } catch {
          return reject(unusable());
        }
        /** @type {any} */
        let result;
        /** @type {any} */
        let failure;
        tx.oncomplete = () => resolve(result);
        tx.onabort = () => reject(failure instanceof FranklyError ? failure : unusable());
        const ask = (/** @type {IDBRequest} */ request) =>
          new Promise((ok, no) => {
            request.onsuccess = () => ok(request.result);
            request.onerror = () => no(unusable());
          });
        work({
          get: (store, key) => ask(tx.objectStore(store).get(key)),
          all: (store) => ask(tx.objectStore(store).getAll()),
          put: (store, value, key) => ask(tx.objectStore(store).put(value, key)),
        }).then(
          (value) => (result = value),
          (error) => {
            failure = error;
            try {
              tx.abort();
            } catch {
              reject(failure instanceof FranklyError ? failure : unusable()); // it has ended already
            }
          },
        );
      }),
  };
}

export class Store {
  constructor(/** @type {Backend} */ backend, /** @type {string} */ name) {
    this.backend = backend;
    this.name = name;
  }

  /** StoreError if the browser keeps nothing, unless `allowMemory`. */
  static async open(/** @type {string} */ name, allowMemory = false) {
    try {
      return new Store(await indexedDatabase(name), name);
    } catch (error) {
      if (!allowMemory) throw error;
      const { memory } = await part(() => import("./memory.js"));
      return new Store(memory(), name);
    }
  }

  get(/** @type {string} */ store, /** @type {any} */ key) {
    return this.backend.run([store], false, (door) => door.get(store, key));
  }

  /** Keep accepted keys, unless others than those they follow have been kept meanwhile. */
  rememberKeys(/** @type {string} */ chain, /** @type {Uint8Array} */ keys, /** @type {Uint8Array | null} */ follows) {
    return this.backend.run(["keys"], true, async (door) => {
      const now = await door.get("keys", chain);
      if (!now || now.join() === follows?.join()) await door.put("keys", keys, chain);
    });
  }

  /** Keep an accepted document; a version never gives way to a lower one, except to replace `insteadOf`. */
  remember(/** @type {string} */ survey, /** @type {{version: number, digest: string, envelope: Uint8Array}} */ document, /** @type {string | null} */ insteadOf) {
    return this.backend.run(["surveys"], true, async (door) => {
      const now = await door.get("surveys", survey);
      if (!now || document.version > now.version || now.digest === insteadOf) await door.put("surveys", document, survey);
    });
  }

  /** Keep what contradicts each other, by digest; the first pieces, if there are very many. */
  keepEvidence(/** @type {[string, Uint8Array][]} */ pieces) {
    return this.backend.run(["evidence"], true, async (door) => {
      let kept = (await door.all("evidence")).length;
      for (const [digest, data] of pieces)
        if (kept < MAX_EVIDENCE && !(await door.get("evidence", digest))) {
          await door.put("evidence", { digest, data }, digest);
          kept++;
        }
    });
  }

  evidence() {
    return this.backend.run(["evidence"], false, (door) => door.all("evidence"));
  }

  /** Keep a head and a document's proof; a head never gives way to a smaller one. */
  rememberLog(/** @type {string} */ origin, /** @type {number} */ size, /** @type {Uint8Array} */ note, /** @type {string} */ digest, /** @type {Uint8Array} */ proof) {
    return this.backend.run(["checkpoints", "proofs"], true, async (door) => {
      const now = await door.get("checkpoints", origin);
      if (!now || size >= now.size) await door.put("checkpoints", { size, note }, origin);
      await door.put("proofs", { proof }, digest);
    });
  }

  /** The name a respondent's ledger is kept under: a hash keyed with this store's own salt; '' is the install's owner. */
  async respondentName(/** @type {string} */ key) {
    if (!key) return "";
    const fresh = new Uint8Array(32);
    try {
      crypto.getRandomValues(fresh);
    } catch {
      throw new RandomnessError();
    }
    const salt = await this.backend.run(["salt"], true, async (door) => {
      const known = await door.get("salt", 0);
      if (!known) await door.put("salt", fresh, 0);
      return known ?? fresh;
    });
    const hmac = await crypto.subtle.importKey("raw", salt, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return hex(new Uint8Array(await crypto.subtle.sign("HMAC", hmac, new TextEncoder().encode(key))));
  }

  /** What was sealed for a survey. @returns {Promise<Sealed | undefined>} */
  answer(/** @type {string} */ survey, respondent = "") {
    return this.get("answers", [respondent, survey]);
  }

  /** Every sealed report that is not acknowledged yet, in an order that tells nothing. @returns {Promise<Sealed[]>} */
  async outbox() {
    const all = await this.backend.run(["answers"], false, (door) => door.all("answers"));
    return all.filter((one) => one.state === "sealed").sort((a, b) => (a.survey + a.id < b.survey + b.id ? -1 : 1));
  }

  /** The cost of every survey this respondent answered here; it never renews itself. @returns {Promise<Sealed[]>} */
  async spent(respondent = "") {
    const all = await this.backend.run(["answers"], false, (door) => door.all("answers"));
    return all.filter((one) => one.respondent === respondent);
  }

  /**
   * Draw and keep in one transaction: `make` gets what was spent, and draws; undefined if there is an answer already.
   * @returns {Promise<Sealed | undefined>}
   */
  seal(/** @type {string} */ survey, /** @type {string} */ respondent, /** @type {(spent: Sealed[]) => Sealed} */ make) {
    return this.backend.run(["answers"], true, async (door) => {
      if (await door.get("answers", [respondent, survey])) return undefined;
      const spent = (await door.all("answers")).filter((one) => one.respondent === respondent);
      const sealed = make(spent);
      await door.put("answers", sealed, [respondent, survey]);
      return sealed;
    });
  }

  /** Erase bytes and id of an acknowledged or finally refused report; its cost stays, and that there was one. */
  closeAnswer(/** @type {Sealed} */ { survey, respondent }, /** @type {"sent" | "refused"} */ state, /** @type {string} */ code) {
    return this.backend.run(["answers"], true, async (door) => {
      const kept = await door.get("answers", [respondent, survey]);
      if (kept?.state === "sealed") await door.put("answers", { ...kept, state, code, body: null, id: "" }, [respondent, survey]);
    });
  }
}
