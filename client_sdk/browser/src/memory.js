// SPDX-License-Identifier: Apache-2.0
/** A store in memory, for pages whose developers allow it. */

/** Return a store in memory, which forgets answered surveys when the page is closed. @returns {import("./store.js").Backend} */
export function memory() {
  /** @type {Map<string, any>} */
  const kept = new Map();
  let last = Promise.resolve();
  return {
    close: () => kept.clear(),
    persist: () => undefined,
    run: (_stores, _write, work) => {
      const done = last.then(async () => {
        /** @type {Map<string, any>} */
        const fresh = new Map();
        const name = (/** @type {string} */ store, /** @type {any} */ key) => JSON.stringify([store, key]);
        const value = await work({
          get: async (store, key) => fresh.get(name(store, key)) ?? kept.get(name(store, key)),
          all: async (store) => [...new Map([...kept, ...fresh])].filter(([key]) => JSON.parse(key)[0] === store).map(([, v]) => v),
          put: async (store, v, key) => fresh.set(name(store, key), v),
        });
        for (const [key, v] of fresh) kept.set(key, v);
        return value;
      });
      last = done.then(() => undefined, () => undefined);
      return done;
    },
  };
}
