// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/texts`. */
import type { FranklyError, FranklyEvent, Receipt } from "./frankly.d.ts";

/** Return the message of an error, a receipt or an event of `@frankly/sdk/core`; empty for an event without a message. */
export function describe(what: FranklyError | Receipt | FranklyEvent): string;
