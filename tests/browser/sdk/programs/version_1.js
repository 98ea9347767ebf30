// SPDX-License-Identifier: Apache-2.0
// Create a database as SDK version 1 did: an alias's keys, a survey, its answer, a log head,
// evidence.
async ({alias, survey, digest, envelope, head, size, cost, state, url}) => {
  const stores = ["keys", "surveys", "answers", "checkpoints", "proofs", "evidence", "salt"];
  const bytes = (list) => new Uint8Array(list), ratio = (pair) => pair && pair.map(BigInt);
  const request = indexedDB.open("frankly", 1);
  request.onupgradeneeded = () => stores.forEach((name) => request.result.createObjectStore(name));
  const db = await new Promise((done) => { request.onsuccess = () => done(request.result); });
  const tx = db.transaction(stores, "readwrite"), put = (name, value, key) => tx.objectStore(name).put(value, key);
  put("keys", bytes([123, 125]), alias); // frankly.keys/1, which this version cannot read
  put("surveys", {version: 2, digest, envelope: bytes(envelope)}, survey);
  const {level, ceiling, free, freeDelta} = cost;
  put("answers", {
    survey, respondent: "", digest, url, id: "0".repeat(32), body: state === "sealed" ? bytes([1, 2]) : null, state, code: "",
    level: ratio(level), ceiling: ratio(ceiling), ...(freeDelta && {free: ratio(free), freeDelta: ratio(freeDelta)}),
  }, ["", survey]);
  put("checkpoints", {size, note: bytes(head)}, "log.example/frankly");
  put("evidence", {digest, data: bytes(envelope)}, digest);
  await new Promise((done) => { tx.oncomplete = done; });
  db.close();
}
