// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/texts`. */
import type { FranklyError } from "./frankly.d.ts";

/** What an error of `@frankly/sdk/core` says, in words. */
export function describe(error: FranklyError): string;
