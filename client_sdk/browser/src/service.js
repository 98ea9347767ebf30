// SPDX-License-Identifier: Apache-2.0
/**
 * Service worker of the hosted page: opens it again without a network. The server puts before it what it may keep: the
 * import map of the page's files, with their hashes. Whatever the network answers is passed on unchanged; what is kept is
 * used only if the network fails. Documents, keys and reports do not go through it: the SDK keeps its own copies.
 */

const worker = /** @type {any} */ (globalThis), { map: MAP, release: RELEASE } = worker.pinned;
/** Hashes of the page's files by path. @type {Record<string, string>} */
const FILES = JSON.parse(MAP).integrity;
const NAME = "frankly-page ", CACHE = NAME + RELEASE, PAGE = /^\/s\/[0-9a-f]{32}$/, LOGO = /^\/s\/[0-9a-f]{32}\/logo$/;
/** @type {RequestInit} */
const BARE = { credentials: "omit", referrerPolicy: "no-referrer" };

const isFile = (/** @type {string} */ path) => Object.hasOwn(FILES, path);
const pathOf = (/** @type {string} */ address) => new URL(address).pathname; // without the fragment, which pins the document and may name the person

/** Keep files that are not kept yet; the browser rejects any whose hash is another one. */
async function keepFiles(/** @type {string[]} */ paths) {
  const cache = await caches.open(CACHE);
  await Promise.all(paths.map(async (path) => {
    if (!(await cache.match(path, { ignoreVary: true }))) await cache.put(path, await fetch(path, { ...BARE, integrity: FILES[path] }));
  }));
}

/** Keep a page that has these files, or forget one that the server does not show any more. */
async function keepPage(/** @type {string} */ path, /** @type {Response} */ reply) {
  const cache = await caches.open(CACHE), logo = `${path}/logo`;
  if (reply.status === 404 || reply.status === 410) await Promise.all([cache.delete(path, { ignoreVary: true }), cache.delete(logo, { ignoreVary: true })]);
  if (reply.status !== 200) return;
  const text = await reply.clone().text();
  if (!text.includes(MAP)) return; // of another release: its own service worker keeps it
  await cache.put(path, reply);
  if (!text.includes(`"${logo}"`) || (await cache.match(logo, { ignoreVary: true }))) return;
  const image = await fetch(logo, BARE);
  if (image.ok) await cache.put(logo, image);
}

/** Keep a page that was opened before this worker was there. */
async function keepOpen(/** @type {string} */ path) {
  if (!PAGE.test(path) || (await caches.match(path, { cacheName: CACHE, ignoreVary: true }))) return;
  await keepPage(path, await fetch(path, { ...BARE, cache: "no-store", headers: { Accept: "text/html" } }));
}

const kept = async (/** @type {string} */ path) => (await caches.match(path, { ignoreVary: true })) ?? Response.error();

async function visit(/** @type {any} */ event, /** @type {string} */ path) {
  /** @type {Response} */
  let reply;
  try {
    reply = await fetch(event.request);
  } catch {
    return kept(path);
  }
  event.waitUntil(keepPage(path, reply.clone()).catch(() => undefined));
  return reply;
}

worker.addEventListener("install", (/** @type {any} */ event) => {
  worker.skipWaiting();
  // A page needs English and its own language, which it names once it is open.
  event.waitUntil(keepFiles(Object.keys(FILES).filter((path) => !path.includes("/words."))));
});

worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil((async () => {
  const old = (await caches.keys()).filter((name) => name.startsWith(NAME) && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await worker.clients.claim();
})()));

worker.addEventListener("message", (/** @type {any} */ event) => {
  const loaded = event.data.map(pathOf).filter(isFile);
  event.waitUntil(Promise.allSettled([keepFiles(loaded), keepOpen(pathOf(event.source.url))]));
});

worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event, { origin, pathname, search } = new URL(request.url);
  if (origin !== location.origin || request.method !== "GET" || search) return;
  if (request.mode === "navigate" && PAGE.test(pathname)) event.respondWith(visit(event, pathname));
  else if (request.mode !== "navigate" && (isFile(pathname) || LOGO.test(pathname))) event.respondWith(fetch(request).catch(() => kept(pathname)));
});
