// SPDX-License-Identifier: Apache-2.0
/**
 * The store of one install, in IndexedDB with strict durability. True answers to protected questions are never written.
 * Only one tab writes at a time: a second caller finds the report of the first, and no second value is drawn.
 */

import { FranklyError, StoreError, part } from "./errors.js";
import { ZERO } from "./rational.js";

/**
 * @typedef {{chain: string, survey: string, respondent: string, digest: string, url: string, id: string, body: Uint8Array | null,
 *   state: "sealed" | "sent" | "refused", code: string, closes?: number} & import("./ledger.js").Charge} Sealed chain: the first root of the survey's keys; closes: ms, missing in reports of earlier versions
 * @typedef {{get: (store: string, key: any) => Promise<any>, all: (store: string) => Promise<any[]>,
 *   put: (store: string, value: any, key: any) => Promise<any>}} Rows the rows of one transaction's stores
 * @typedef {{run: <T>(stores: string[], write: boolean, work: (rows: Rows) => Promise<T>) => Promise<T>,
 *   persist: () => void, close: () => void}} Backend
 */

const STORES = ["aliases", "keys", "surveys", "answers", "checkpoints", "proofs", "evidence", "salt", "plans"];
const MAX_EVIDENCE = 16, OWNER = [""];

/**
 * Migration of version 1, by store: the new value and key of a row. Version 1 had no chains of keys: its rows get the empty
 * chain ''. Its keys are dropped: their format, `frankly.keys/1`, is no longer supported.
 * @type {Record<string, (value: any, key: any) => [any, any]>}
 */
const FROM_1 = {
  surveys: (document, survey) => [document, ["", survey]],
  answers: ({ level: _, ceiling, free = null, freeDelta: delta = ZERO, ...rest }, [respondent, survey]) =>
    [{ ...rest, chain: "", cost: delta[0] ? free : ceiling, delta }, [respondent, "", survey]],
  checkpoints: (head, name) => [head, ["", name]],
  proofs: (proof, digest) => [proof, ["", digest]],
  evidence: (piece, digest) => [{ ...piece, chain: "" }, ["", digest]],
};

/** Create the missing stores, and migrate those of version 1; version 2 had no plans. */
function upgrade(/** @type {IDBOpenDBRequest} */ { result, transaction }, /** @type {number} */ from) {
  if (!from) return STORES.forEach((store) => result.createObjectStore(store));
  result.createObjectStore("plans");
  if (from > 1) return;
  result.createObjectStore("aliases");
  /** @type {IDBTransaction} */ (transaction).objectStore("keys").clear();
  for (const [name, renewed] of Object.entries(FROM_1)) {
    const store = /** @type {IDBTransaction} */ (transaction).objectStore(name), keys = store.getAllKeys(), values = store.getAll();
    values.onsuccess = () => {
      store.clear();
      values.result.forEach((value, i) => store.put(...renewed(value, keys.result[i])));
    };
  }
}

/** Return the result of a request; throws StoreError if it fails. */
const answered = (/** @type {IDBRequest} */ request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = /** @type {IDBOpenDBRequest} */ (request).onblocked = () => reject(new StoreError());
});

/** @returns {Promise<Backend>} */
async function indexedDatabase(/** @type {string} */ name) {
  /** @type {IDBDatabase} */
  let db;
  try {
    const request = indexedDB.open(name, 3);
    request.onupgradeneeded = ({ oldVersion }) => upgrade(request, oldVersion);
    db = await answered(request);
  } catch {
    throw new StoreError(); // indexedDB is missing, or access to it is forbidden
  }
  const close = () => db.close();
  db.onversionchange = close;
  return {
    close,
    persist: () => void Promise.resolve().then(() => navigator.storage.persist()).catch(() => undefined),
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
          fail(error); // the transaction has already ended
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

  /** Open a store; throws StoreError if the browser stores nothing, unless `allowMemory`. */
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
    return this.backend.run([store], false, (rows) => rows.get(store, key));
  }

  all(/** @type {string} */ store) {
    return this.backend.run([store], false, (rows) => rows.all(store));
  }

  /** Replace a value by `next(value)`, unless that is falsy; returns the stored value. */
  change(/** @type {string} */ store, /** @type {any} */ key, /** @type {(kept: any) => any} */ next) {
    return this.backend.run([store], true, async (rows) => {
      const kept = await rows.get(store, key), changed = next(kept);
      if (changed) await rows.put(store, changed, key);
      return changed || kept;
    });
  }

  /**
   * Return the newest keys of an alias's chain; an alias is an origin, with the digest of any shipped keys.
   * @returns {Promise<{chain: string, envelope: Uint8Array} | undefined>}
   */
  aliasKeys(/** @type {string} */ alias) {
    return this.backend.run(["aliases", "keys"], false, async (rows) => {
      const chain = await rows.get("aliases", alias);
      return chain && rows.get("keys", chain);
    });
  }

  /** Store accepted keys as the newest of their chain; `check` throws unless they follow the stored keys. */
  rememberKeys(
    /** @type {string} */ alias, /** @type {{chain: string, envelope: Uint8Array}} */ keys,
    /** @type {(kept: {chain: string, envelope: Uint8Array}) => void} */ check,
  ) {
    return this.backend.run(["aliases", "keys"], true, async (rows) => {
      const mine = await rows.get("aliases", alias); // another tab may have stored keys of this origin in the meantime
      for (const kept of [mine && (await rows.get("keys", mine)), await rows.get("keys", keys.chain)]) if (kept) check(kept);
      await rows.put("keys", keys, keys.chain);
      await rows.put("aliases", keys.chain, alias);
    });
  }

  /** Store an accepted document; a version is never replaced by a lower one, unless its digest is `insteadOf`. */
  remember(
    /** @type {string} */ chain, /** @type {string} */ survey, /** @type {{version: number, digest: string, envelope: Uint8Array}} */ document,
    /** @type {string | null} */ insteadOf,
  ) {
    return this.change("surveys", [chain, survey], (now) => (!now || document.version > now.version || now.digest === insteadOf) && document);
  }

  /** Store pieces of evidence for a contradiction, by digest; pieces beyond a limit per chain are ignored. */
  keepEvidence(/** @type {string} */ chain, /** @type {[string, Uint8Array][]} */ pieces) {
    return this.backend.run(["evidence"], true, async (rows) => {
      const kept = new Set((await rows.all("evidence")).filter((one) => one.chain === chain).map((one) => one.digest));
      const added = pieces.filter(([digest]) => !kept.has(digest));
      if (kept.size + added.length > MAX_EVIDENCE) return; // stored together or not at all: half of a contradiction proves nothing
      for (const [digest, data] of added) await rows.put("evidence", { chain, digest, data }, [chain, digest]);
    });
  }

  evidence() {
    return this.all("evidence");
  }

  /** Return the names of a respondent's ledger, first the one for new answers; '' is the owner of the install. @returns {Promise<string[]>} */
  async respondentNames(/** @type {string} */ key) {
    return key ? (await part(() => import("./respondents.js"))).namesOf(key, this) : OWNER;
  }

  /** Return the sealed answer to a survey. @returns {Promise<Sealed | undefined>} */
  answer(/** @type {string} */ chain, /** @type {string} */ survey, names = OWNER) {
    return this.backend.run(["answers"], false, (rows) => answerOf(rows, chain, survey, names));
  }

  /** Return the stored state of a sealed answer. @returns {Promise<Sealed | undefined>} */
  kept(/** @type {Sealed} */ sealed) {
    return this.get("answers", placeOf(sealed));
  }

  /** Return every sealed report that is not acknowledged yet, in an order independent of the answers. @returns {Promise<Sealed[]>} */
  async outbox() {
    const sealed = (await this.all("answers")).filter((one) => one.state === "sealed");
    return sealed.sort((a, b) => (a.survey + a.id < b.survey + b.id ? -1 : 1));
  }

  /** Return the cost of every survey that this respondent answered here, over all chains; the total never decreases. @returns {Promise<Sealed[]>} */
  async spent(names = OWNER) {
    return spentBy(await this.all("answers"), names);
  }

  /**
   * Return the plans of a respondent for a form (plans.js); `make` draws them if there are none for it, after `check` of the earlier
   * charges. Returns undefined if there is already an answer.
   * @returns {Promise<any>}
   */
  async plan(
    /** @type {string} */ chain, /** @type {string} */ survey, /** @type {string[]} */ names, /** @type {string} */ form,
    /** @type {(spent: Sealed[]) => void} */ check, /** @type {() => any} */ make,
  ) {
    const place = [names[0], chain, survey];
    await this.backend.run(["answers", "plans"], true, async (rows) => {
      if (await answerOf(rows, chain, survey, names)) return;
      check(spentBy(await rows.all("answers"), names));
      const kept = await rows.get("plans", place); // a plan for each form, so that no version of the survey draws again
      if (!kept?.[form]) await rows.put("plans", { ...kept, [form]: make() }, place);
    });
    return this.planned(chain, survey, names, form); // read after the commit: nothing is asked that is not stored durably
  }

  /** Return the stored plans of a respondent for a form. @returns {Promise<any>} */
  async planned(/** @type {string} */ chain, /** @type {string} */ survey, /** @type {string[]} */ names, /** @type {string} */ form) {
    return (await this.get("plans", [names[0], chain, survey]))?.[form];
  }

  /**
   * Draw and store in one transaction: `make` is called with the earlier charges and the stored plans, and draws the symbols. Returns
   * undefined if there is already an answer. At the first seal, the browser is asked not to evict the store; the report
   * stays sealed if it refuses.
   * @returns {Promise<Sealed | undefined>}
   */
  async seal(
    /** @type {string} */ chain, /** @type {string} */ survey, /** @type {string[]} */ names, /** @type {string} */ form,
    /** @type {(spent: Sealed[], plans: any) => Sealed} */ make,
  ) {
    let isFirst = false;
    const place = [names[0], chain, survey];
    const sealed = await this.backend.run(["answers", "plans"], true, async (rows) => {
      if (await answerOf(rows, chain, survey, names)) return undefined;
      const all = await rows.all("answers"), kept = await rows.get("plans", place), made = make(spentBy(all, names), kept?.[form]);
      isFirst = !all.length;
      await rows.put("answers", made, placeOf(made));
      if (kept) await rows.put("plans", null, place); // the report shows what it is about, until it is erased too
      return made;
    });
    if (isFirst) this.backend.persist();
    return sealed;
  }

  /** Erase bytes and id of an acknowledged or finally refused report; the row and its cost stay. */
  closeAnswer(/** @type {Sealed} */ sealed, /** @type {string} */ state, /** @type {string} */ code) {
    return this.change("answers", placeOf(sealed), (kept) => kept?.state === "sealed" && { ...kept, state, code, body: null, id: "" });
  }
}

const placeOf = (/** @type {Sealed} */ { respondent, chain, survey }) => [respondent, chain, survey];
const spentBy = (/** @type {Sealed[]} */ all, /** @type {string[]} */ names) => all.filter((one) => names.includes(one.respondent));

/** Return an answer of this chain, or an answer that was stored without a chain, which applies to every chain. */
async function answerOf(/** @type {Rows} */ rows, /** @type {string} */ chain, /** @type {string} */ survey, /** @type {string[]} */ names) {
  for (const name of names)
    for (const root of [chain, ""]) {
      const found = await rows.get("answers", [name, root, survey]);
      if (found) return found;
    }
}
