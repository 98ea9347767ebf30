// SPDX-License-Identifier: Apache-2.0
/** The link stands in this page, pinned; in a real page it would be written here as a constant of your build. */

import "./sdk/element.js";

const survey = document.querySelector("frankly-survey");
survey.addEventListener("frankly-sent", () => {
  document.querySelector("#what").textContent = "The page was told that a randomised answer arrived; it does not know which.";
});
survey.setAttribute("link", decodeURIComponent(location.search.slice("?link=".length)));
