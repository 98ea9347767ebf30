// SPDX-License-Identifier: Apache-2.0
// base_url for the search plugin's script, and a region for results, shown only during a search.
var base_url = document.currentScript.dataset.base;

(function () {
  const query = document.getElementById("mkdocs-search-query");
  const results = document.getElementById("mkdocs-search-results");
  const show = () => { results.hidden = query.value.trim().length < 3; };
  query.addEventListener("input", show);
  query.addEventListener("keyup", (event) => {
    if (event.key === "Escape") { query.value = ""; }
    show();
  });
  window.addEventListener("load", () => {
    // a query that was typed before the index was loaded gets its results afterwards
    window.searchWorker?.addEventListener("message", (event) => {
      if (event.data.allowSearch) { query.dispatchEvent(new Event("keyup")); }
    });
  });
  const menu = document.querySelector("details.menu");
  const wide = window.matchMedia("(min-width: 62rem)");
  const settle = () => { menu.open = wide.matches; };
  wide.addEventListener("change", settle);
  settle();
  document.querySelectorAll("pre, main table").forEach((part) => {
    const box = part.tagName === "TABLE" ? part.parentElement : part;
    box.tabIndex = 0; // allows scrolling with the keyboard
  });
})();
