// SPDX-License-Identifier: Apache-2.0
/**
 * node bundle.mjs [FOLDER]: bundle and minify the modules of src/ for pages that have to be small. First run `npm ci`, which
 * installs the versions in package-lock.json. The same sources give the same bytes. FOLDER must be new, empty, or contain a
 * bundle, of which only the files in its manifest are replaced. The hosted page's own files go to page/, each also compressed
 * by gzip and brotli: hosted.js, which shows the questions; app.js, all that most surveys need; parts for the others; and the
 * service worker.
 *
 * core.js is one file; explain.js, texts.js, index.js and element.js add to it; verifier.js is the script of the worker;
 * modules that src/ loads on demand stay separate. manifest.json contains the SHA-256 of every source and tool file, so that
 * a test without a bundler can compare them with the bundle, and the `integrity` of every file for import maps.
 * Properties are not renamed, because they are in documents, databases and types; nor are exports between files: a file of
 * another version from a cache then fails because a name is missing, instead of exporting a wrong value under it.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url)), src = join(here, "src"), made = process.argv[2] ?? join(here, "bundle");
const page = process.argv[2] ? join(made, "page") : join(here, "page");
const ENTRIES = ["core", "explain", "texts", "index", "element", "verifier", "blind", "testing"];
const FILES = ["core", "ways", "shown", "explain", "texts", "index", "element"]; // each contains the modules that those before it do not
const MAKERS = ["bundle.mjs", "package-lock.json"];
const hash = (data, algorithm, form) => createHash(algorithm).update(data).digest(form);
const sha256 = (data) => hash(data, "sha256", "hex");

/** Return the paths of the files of the bundle in a folder; exit if the folder contains anything else. */
function bundleIn(folder) {
  const there = existsSync(folder) ? readdirSync(folder) : [];
  if (!there.length) return [];
  try {
    const { made_by: tools, files: names } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
    if (tools.rollup) return ["manifest.json", ...Object.keys(names)].flatMap((name) => ["", ".gz", ".br"].map((end) => join(folder, basename(name) + end)));
  } catch {
    // The manifest is missing, or another program wrote it.
  }
  console.error(`${folder} contains other files than a bundle: name a folder that is empty or does not exist`);
  process.exit(1);
}

const pathOf = (name) => join(src, `${name}.js`);
const old = [made, page].flatMap(bundleIn);
const [{ rollup }, { minify }] = await Promise.all([import("rollup"), import("terser")]);

/** Return the modules that a module imports statically, itself included. */
function closure(name, getModuleInfo, found = new Set()) {
  if (!found.has(name)) {
    found.add(name);
    for (const next of getModuleInfo(name).importedIds) closure(next, getModuleInfo, found);
  }
  return found;
}

// The hosted page's first file has its own copy of this module: importing it from the other file would load all of that
// file.
const copied = {
  name: "copied", load: (id) => (id.endsWith("?copy") ? readFileSync(id.replace("?copy", ""), "utf8") : null),
  resolveId: (source, importer = "") => (importer.endsWith("preview.js") && source === "./languages.js" ? `${pathOf("languages")}?copy` : null),
};
const code = (entries) => rollup({
  plugins: [copied],
  input: Object.fromEntries(entries.map((name) => [name, join(src, `${name}.js`)])),
  preserveEntrySignatures: "allow-extension",
  treeshake: { moduleSideEffects: (id) => /(element|hosted|service)\.js$/.test(id) },
  onwarn: (warning) => {
    if (warning.code !== "CIRCULAR_DEPENDENCY") throw new Error(warning.message); // rare.js imports from audit.js
  },
});

/** Write the minified files of a bundle whose modules are in the files that `place` names; return their hashes. */
async function write(folder, entries, place, also = (_file, _code) => undefined) {
  const { output } = await (await code(entries)).generate({
    format: "es", compact: true, minifyInternalExports: false, hoistTransitiveImports: false, chunkFileNames: "[name].js", manualChunks: place,
  });
  mkdirSync(folder, { recursive: true });
  const files = {};
  for (const { fileName, code: whole } of output) {
    const { code: small } = await minify(whole, {
      module: true, ecma: 2020, compress: { passes: 4, ecma: 2020, unsafe_arrows: true, keep_fargs: false },
      format: { preamble: "// SPDX-License-Identifier: Apache-2.0" },
    });
    writeFileSync(join(folder, fileName), small + "\n");
    also(join(folder, fileName), Buffer.from(small + "\n"));
    files[fileName] = `sha384-${hash(small + "\n", "sha384", "base64")}`;
  }
  return Object.fromEntries(Object.entries(files).sort());
}

/** Write the compressed forms of a file; their bytes depend on Node's libraries, so a test compares the decompressed contents. */
function compress(path, data) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: data.length };
  writeFileSync(`${path}.gz`, gzipSync(data, { level: 9 }));
  writeFileSync(`${path}.br`, brotliCompressSync(data, { params }));
}

for (const path of old) rmSync(path, { force: true });
const isIn = (name, id, getModuleInfo) => closure(pathOf(name), getModuleInfo).has(id);
const files = await write(made, ENTRIES, (id, { getModuleInfo }) => {
  // In one file with the client, the verifier is smaller than in one of its own.
  if (isIn("verifier", id, getModuleInfo)) return id === pathOf("verifier") ? "verifier" : "core";
  return [...FILES, "kinds"].find((name) => isIn(name, id, getModuleInfo));
});
const ofPage = await write(page, ["hosted", "verifier", "service"], (id, { getModuleInfo }) => {
  if (isIn("hosted", id, getModuleInfo)) return "hosted";
  if (["element", "offline"].some((name) => isIn(name, id, getModuleInfo)) || basename(id) === "budget.js") return "app";
  return ["verifier", "kinds"].find((name) => isIn(name, id, getModuleInfo)); // the page's own thread needs no verifier
}, compress);
const digests = (folder, names) => Object.fromEntries(names.sort().map((name) => [name, sha256(readFileSync(join(folder, name)))]));
const sources = digests(src, readdirSync(src).filter((name) => name.endsWith(".js")));
const versionOf = (tool) => JSON.parse(readFileSync(join(here, "node_modules", tool, "package.json"), "utf8")).version;
for (const [folder, made_of] of [[made, files], [page, ofPage]]) {
  const manifest = { made_by: { rollup: versionOf("rollup"), terser: versionOf("terser") }, makers: digests(here, MAKERS), sources, files: made_of };
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest, null, 1) + "\n");
}
