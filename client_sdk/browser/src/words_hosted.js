// SPDX-License-Identifier: Apache-2.0
/** English text of the hosted page alone; written by `python -m tools.languages` from shared/frankly_protocol/explanation/texts/. */

export const OFFLINE = "You are offline. You can answer; your result is sent later from this device.";
