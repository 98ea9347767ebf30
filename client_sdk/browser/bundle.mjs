// SPDX-License-Identifier: Apache-2.0
/**
 * node bundle.mjs [FOLDER]: bundle and minify the modules of src/ for pages that have to be small. First run `npm ci`, which
 * installs the versions in package-lock.json. The same sources give the same bytes. FOLDER must be new, empty, or contain a
 * bundle, of which only the files in its manifest are replaced.
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

const here = dirname(fileURLToPath(import.meta.url)), src = join(here, "src"), made = process.argv[2] ?? join(here, "bundle");
const ENTRIES = ["core", "explain", "texts", "index", "element", "verifier"];
const FILES = ["core", "shown", "explain", "texts", "index", "element"]; // each contains the modules that those before it do not
const MAKERS = ["bundle.mjs", "package-lock.json"];
const hash = (data, algorithm, form) => createHash(algorithm).update(data).digest(form);
const sha256 = (data) => hash(data, "sha256", "hex");

/** Return the files of the bundle in a folder; exit if the folder contains anything else. */
function bundleIn(folder) {
  const there = existsSync(folder) ? readdirSync(folder) : [];
  if (!there.length) return [];
  try {
    const { made_by: tools, files: names } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
    if (tools.rollup) return ["manifest.json", ...Object.keys(names)].map((name) => join(folder, basename(name)));
  } catch {
    // There is no manifest, or another program wrote it.
  }
  console.error(`${folder} contains other files than a bundle: name a folder that is empty or does not exist`);
  process.exit(1);
}

const old = bundleIn(made);
const [{ rollup }, { minify }] = await Promise.all([import("rollup"), import("terser")]);

/** Return the modules that a module imports statically, itself included. */
function closure(name, getModuleInfo, found = new Set()) {
  if (!found.has(name)) {
    found.add(name);
    for (const next of getModuleInfo(name).importedIds) closure(next, getModuleInfo, found);
  }
  return found;
}

const bundle = await rollup({
  input: Object.fromEntries(ENTRIES.map((name) => [name, join(src, `${name}.js`)])),
  preserveEntrySignatures: "allow-extension",
  treeshake: { moduleSideEffects: (id) => id.endsWith("element.js") },
  onwarn: (warning) => {
    if (warning.code !== "CIRCULAR_DEPENDENCY") throw new Error(warning.message); // rare.js imports from audit.js
  },
});
const { output } = await bundle.generate({
  format: "es", compact: true, minifyInternalExports: false, hoistTransitiveImports: false, chunkFileNames: "[name].js",
  manualChunks: (id, { getModuleInfo }) => FILES.find((name) => closure(join(src, `${name}.js`), getModuleInfo).has(id)),
});
for (const path of old) rmSync(path, { force: true });
mkdirSync(made, { recursive: true });
const files = {};
for (const { fileName, code: whole } of output) {
  const { code } = await minify(whole, {
    module: true, ecma: 2020, compress: { passes: 4, ecma: 2020, unsafe_arrows: true, keep_fargs: false },
    format: { preamble: "// SPDX-License-Identifier: Apache-2.0" },
  });
  writeFileSync(join(made, fileName), code + "\n");
  files[fileName] = `sha384-${hash(code + "\n", "sha384", "base64")}`;
}
const digests = (folder, names) => Object.fromEntries(names.sort().map((name) => [name, sha256(readFileSync(join(folder, name)))]));
const sources = digests(src, readdirSync(src).filter((name) => name.endsWith(".js")));
const versionOf = (tool) => JSON.parse(readFileSync(join(here, "node_modules", tool, "package.json"), "utf8")).version;
const manifest = { made_by: { rollup: versionOf("rollup"), terser: versionOf("terser") }, makers: digests(here, MAKERS), sources, files: Object.fromEntries(Object.entries(files).sort()) };
writeFileSync(join(made, "manifest.json"), JSON.stringify(manifest, null, 1) + "\n");
