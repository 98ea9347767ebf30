// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vite";

const pages = ["react", "vue", "surveyjs"];

export default defineConfig({
  base: "./",
  plugins: [vue()],
  resolve: { preserveSymlinks: true }, // the packages are symbolic links into this repository
  optimizeDeps: { exclude: ["@frankly/sdk"] }, // lets the development server find the SDK's worker
  worker: { format: "es" },
  build: { target: "es2022", rollupOptions: { input: pages.map((name) => fileURLToPath(new URL(`./${name}/index.html`, import.meta.url))) } },
});
