// SPDX-License-Identifier: Apache-2.0
/** The way back to the panel that sent a person. */

import { make } from "./fields.js";

/** Return the nodes for the attributes `return-to` and `completion-code`. No answer and no draw gets here, so none can change them. */
export function wayBack(/** @type {Element} */ element, /** @type {import("./words.js").Strings} */ strings) {
  const to = element.getAttribute("return-to"), code = element.getAttribute("completion-code"), [before, after = ""] = strings.completion.split("{code}");
  return [
    ...(code ? [make("p", { part: "completion" }, before, make("code", { dir: "ltr" }, code), after)] : []),
    // A page may fill the attribute from its own address: no other scheme, such as javascript:, becomes a link.
    ...(to && /^https:\/\//.test(to) ? [make("p", {}, make("a", { id: "back", class: "back", part: "back", href: to, rel: "noreferrer noopener" }, strings.back))] : []),
  ];
}
