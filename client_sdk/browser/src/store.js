// SPDX-License-Identifier: Apache-2.0
/**
 * What one install remembers, in IndexedDB with strict durability. The truth is never written. Transactions that write
 * exclude each other across tabs: whoever comes second finds the first one's report, and no second value is drawn.
 */

import { FranklyError, StoreError, part } from "./errors.js";

/**
 * @typedef {{survey: string, respondent: string, digest: string, url: string, id: string, body: Uint8Array | null,
 *   state: "sealed" | "sent" | "refused", code: string} & import("./ledger.js").Charge} Sealed
 * @typedef {{get: (store: string, key: any) => Promise<any>, all: (store: string) => Promise<any[]>,
 *   put: (store: string, value: any, key: any) => Promise<any>}} Door
 * @typedef {{run: <T>(stores: string[], write: boolean, work: (door: Door) => Promise<T>) => Promise<T>, close: () => void}} Backend
 */

const STORES = ["keys", "surveys", "answers", "checkpoints", "proofs", "evidence", "salt"];
const MAX_EVIDENCE = 16;

/** What a request gives; StoreError if it fails. */
const answered = (/** @type {IDBRequest} */ request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = /** @type {IDBOpenDBRequest} */ (request).onblocked = () => reject(new StoreError());
});

/** @returns {Promise<Backend>} */
async function indexedDatabase(/** @type {string} */ name) {
  /** @type {IDBDatabase} */
  let db;
  try {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => STORES.forEach((store) => request.result.createObjectStore(store));
    db = await answered(request);
  } catch {
    throw new StoreError(); // indexedDB is missing, or looking at it is forbidden
  }
  const close = () => db.close();
  db.onversionchange = close;
  return {
    close,
    run: (stores, write, work) => new Promise((resolve, reject) => {
      const fail = (/** @type {unknown} */ error) => reject(error instanceof FranklyError ? error : new StoreError());
      /** @type {IDBTransaction} */
      let tx;
      try {
        tx = db.transaction(stores, write ? "readwrite" : "readonly", { durability: "strict" });
      } catch (error) {
        return fail(error);
      }
      /** @type {any} */
      let result;
      /** @type {unknown} */
      let failure;
      tx.oncomplete = () => resolve(result);
      tx.onabort = () => fail(failure);
      const place = (/** @type {string} */ store) => tx.objectStore(store);
      work({
        get: (store, key) => answered(place(store).get(key)),
        all: (store) => answered(place(store).getAll()),
        put: (store, value, key) => answered(place(store).put(value, key)),
      }).then((value) => (result = value), (error) => {
        failure = error;
        try {
          tx.abort();
        } catch {
          fail(error); // it has ended already
        }
      });
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

  all(/** @type {string} */ store) {
    return this.backend.run([store], false, (door) => door.all(store));
  }

  /** Put what `next` makes of what is kept, unless that is nothing; what is kept then. */
  change(/** @type {string} */ store, /** @type {any} */ key, /** @type {(kept: any) => any} */ next) {
    return this.backend.run([store], true, async (door) => {
      const kept = await door.get(store, key), changed = next(kept);
      if (changed) await door.put(store, changed, key);
      return changed || kept;
    });
  }

  /** Keep accepted keys, unless others than those they follow have been kept meanwhile. */
  rememberKeys(/** @type {string} */ chain, /** @type {Uint8Array} */ keys, /** @type {Uint8Array | null} */ follows) {
    return this.change("keys", chain, (now) => (!now || String(now) === String(follows)) && keys);
  }

  /** Keep an accepted document; a version never gives way to a lower one, except to replace `insteadOf`. */
  remember(/** @type {string} */ survey, /** @type {{version: number, digest: string, envelope: Uint8Array}} */ document, /** @type {string | null} */ insteadOf) {
    return this.change("surveys", survey, (now) => (!now || document.version > now.version || now.digest === insteadOf) && document);
  }

  /** Keep what contradicts each other, by digest; the first pieces, if there are very many. */
  keepEvidence(/** @type {[string, Uint8Array][]} */ pieces) {
    return this.backend.run(["evidence"], true, async (door) => {
      const kept = new Set((await door.all("evidence")).map((one) => one.digest));
      for (const [digest, data] of pieces)
        if (kept.size < MAX_EVIDENCE && !kept.has(digest)) {
          await door.put("evidence", { digest, data }, digest);
          kept.add(digest);
        }
    });
  }

  evidence() {
    return this.all("evidence");
  }

  /** The name a respondent's ledger is kept under; '' is the install's owner. */
  async respondentName(/** @type {string} */ key) {
    return key && (await part(() => import("./respondents.js"))).nameOf(key, this);
  }

  /** What was sealed for a survey. @returns {Promise<Sealed | undefined>} */
  answer(/** @type {string} */ survey, respondent = "") {
    return this.get("answers", [respondent, survey]);
  }

  /** Every sealed report that is not acknowledged yet, in an order that tells nothing. @returns {Promise<Sealed[]>} */
  async outbox() {
    const sealed = (await this.all("answers")).filter((one) => one.state === "sealed");
    return sealed.sort((a, b) => (a.survey + a.id < b.survey + b.id ? -1 : 1));
  }

  /** The cost of every survey this respondent answered here; it never renews itself. @returns {Promise<Sealed[]>} */
  async spent(respondent = "") {
    return spentBy(await this.all("answers"), respondent);
  }

  /**
   * Draw and keep in one transaction: `make` gets what was spent, and draws; undefined if there is an answer already.
   * @returns {Promise<Sealed | undefined>}
   */
  seal(/** @type {string} */ survey, /** @type {string} */ respondent, /** @type {(spent: Sealed[]) => Sealed} */ make) {
    return this.backend.run(["answers"], true, async (door) => {
      if (await door.get("answers", [respondent, survey])) return undefined;
      const sealed = make(spentBy(await door.all("answers"), respondent));
      await door.put("answers", sealed, [respondent, survey]);
      return sealed;
    });
  }

  /** Erase bytes and id of an acknowledged or finally refused report; its cost stays, and that there was one. */
  closeAnswer(/** @type {Sealed} */ { survey, respondent }, /** @type {string} */ state, /** @type {string} */ code) {
    return this.change("answers", [respondent, survey], (kept) => kept?.state === "sealed" && { ...kept, state, code, body: null, id: "" });
  }
}

const spentBy = (/** @type {Sealed[]} */ all, /** @type {string} */ respondent) => all.filter((one) => one.respondent === respondent);
