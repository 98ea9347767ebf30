// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/texts`. */
import type { FranklyError, FranklyEvent, Receipt } from "./frankly.d.ts";

/** What an error, a receipt or an event of `@frankly/sdk/core` says, in words; empty where an event says nothing. */
export function describe(what: FranklyError | Receipt | FranklyEvent): string;
