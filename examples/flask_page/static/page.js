// SPDX-License-Identifier: Apache-2.0
/** The element gets this app's copy of the keys before its link, so the element does not request them from the server. */

import "/frankly/element.js";

const survey = document.querySelector("frankly-survey");
const keys = await fetch("/frankly-keys.json");
survey.options = { keys: new Uint8Array(await keys.arrayBuffer()) };
survey.addEventListener("frankly-sent", () => {
  document.querySelector("#thanks").textContent = "The members' corner knows that you took part, and nothing else.";
});
survey.setAttribute("link", survey.dataset.link);
