// SPDX-License-Identifier: Apache-2.0
/** The element gets the keys that this app ships before it gets its link: the server's own word is not taken for them. */

import "/frankly/element.js";

const survey = document.querySelector("frankly-survey");
const keys = await fetch("/frankly-keys.json");
survey.options = { keys: new Uint8Array(await keys.arrayBuffer()) };
survey.addEventListener("frankly-sent", () => {
  document.querySelector("#thanks").textContent = "The members' corner was told that you took part, and nothing else.";
});
survey.setAttribute("link", survey.dataset.link);
