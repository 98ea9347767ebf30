// SPDX-License-Identifier: Apache-2.0
/** The element gets this app's copy of the keys before its link, so it does not ask the server for them. */

import "/frankly/element.js";

const survey = document.querySelector("frankly-survey");
const keys = await fetch("/frankly-keys.json");
survey.options = { keys: new Uint8Array(await keys.arrayBuffer()) };
survey.addEventListener("frankly-sent", () => {
  document.querySelector("#thanks").textContent = "The members' corner was told that you took part, and nothing else.";
});
survey.setAttribute("link", survey.dataset.link);
