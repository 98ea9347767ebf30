// SPDX-License-Identifier: Apache-2.0
/** This example reads the pinned link from the page's address; a real page would have it as a constant. */

import "./sdk/element.js";

const survey = document.querySelector("frankly-survey");
survey.addEventListener("frankly-sent", () => {
  document.querySelector("#what").textContent = "The page was told that a randomised answer arrived; it does not know which.";
});
survey.setAttribute("link", decodeURIComponent(location.search.slice("?link=".length)));
