// SPDX-License-Identifier: Apache-2.0
/** Frankly in a web page: verify what is asked, randomise exactly, seal, then send one noisy report. */

export { Client } from "./client.js";
export * from "./errors.js";
export { explain } from "./explain.js";
export { Policy } from "./ledger.js";
export { readLink } from "./link.js";
