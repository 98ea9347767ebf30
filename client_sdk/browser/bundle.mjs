// SPDX-License-Identifier: Apache-2.0
/**
 * node bundle.mjs [FOLDER]: bundle and minify the modules of src/ for pages that count their bytes; `npm ci` first,
 * which brings the versions that package-lock.json names. The same sources give the same bytes.
 *
 * core.js is one file; explain.js, texts.js, index.js and element.js add theirs; what src/ loads when a survey needs it
 * stays apart. manifest.json names the SHA-256 of every source and of every file made, so that a test can tell without
 * a bundler whether they belong together. Properties keep their names: they are in documents, databases and the types.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rollup } from "rollup";
import { minify } from "terser";

const here = dirname(fileURLToPath(import.meta.url)), src = join(here, "src"), made = process.argv[2] ?? join(here, "bundle");
const ENTRIES = ["core", "explain", "texts", "index", "element"];
const FILES = ["core", "shown", "explain", "texts", "index", "element"]; // each holds what those before it do not
const sha256 = (data) => createHash("sha256").update(data).digest("hex");

/** What a module imports at once, itself included. */
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
    if (warning.code !== "CIRCULAR_DEPENDENCY") throw new Error(warning.message); // rare.js asks audit.js for its words
  },
});
const { output } = await bundle.generate({
  format: "es", compact: true, minifyInternalExports: true, hoistTransitiveImports: false, chunkFileNames: "[name].js",
  manualChunks: (id, { getModuleInfo }) => FILES.find((name) => closure(join(src, `${name}.js`), getModuleInfo).has(id)),
});
rmSync(made, { recursive: true, force: true });
mkdirSync(made, { recursive: true });
const files = {};
for (const { fileName, code: whole } of output) {
  const { code } = await minify(whole, {
    module: true, ecma: 2020, compress: { passes: 4, ecma: 2020, unsafe_arrows: true, keep_fargs: false },
    format: { preamble: "// SPDX-License-Identifier: Apache-2.0" },
  });
  writeFileSync(join(made, fileName), code + "\n");
  files[fileName] = sha256(code + "\n");
}
const sources = Object.fromEntries(readdirSync(src).filter((name) => name.endsWith(".js")).sort().map((name) => [name, sha256(readFileSync(join(src, name)))]));
const versionOf = (tool) => JSON.parse(readFileSync(join(here, "node_modules", tool, "package.json"), "utf8")).version;
const manifest = { made_by: { rollup: versionOf("rollup"), terser: versionOf("terser") }, sources, files: Object.fromEntries(Object.entries(files).sort()) };
writeFileSync(join(made, "manifest.json"), JSON.stringify(manifest, null, 1) + "\n");
