// SPDX-License-Identifier: Apache-2.0
/** State of a survey before its form is shown, for the element and the adapters. */

import { AlreadyAnswered, NetworkError, unless } from "./errors.js";
import { isDrawn } from "./survey.js";

/**
 * Return the receipt of an earlier answer, or what to ask and the budget. The plan, if the device draws one, is stored before
 * the first question exists in the page. Without a network the budget is missing: its code may not be loaded.
 * @returns {Promise<{before?: import("./delivery.js").Receipt | null, plan?: import("./plans.js").Plan, budget?: import("../frankly.d.ts").Budget}>}
 */
export async function begin(/** @type {import("./client.js").Client} */ client) {
  const before = await client.answered(), { survey } = client;
  if (before) return { before };
  try {
    const plan = survey && isDrawn(survey) ? await client.plan() : undefined;
    return { plan, budget: await unless(client.budget("", plan), NetworkError, () => undefined) };
  } catch (error) {
    if (error instanceof AlreadyAnswered) return { before: error.receipt }; // in another tab
    throw error;
  }
}
