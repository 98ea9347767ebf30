// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/core`: everything but the words. */
import type { Client as Full, Options } from "./frankly.d.ts";

export * from "./frankly.js";
export type Client = Omit<Full, "explain">;
export const Client: { open(link: string, options?: Options): Promise<Client> };
