// SPDX-License-Identifier: Apache-2.0
// What the theme leaves out for screen readers and keyboards: levels, names, and boxes that scroll.
addEventListener("DOMContentLoaded", () => {
  const set = (places, name, value) =>
    document.querySelectorAll(places).forEach((place) => place.setAttribute(name, value));
  set(".caption[role=heading]", "aria-level", "2");
  set("aside.sidebar-drawer", "aria-label", "Pages");
  set("aside.toc-drawer", "aria-label", "On this page");
  document.getElementById("search-results")?.insertAdjacentHTML("beforebegin", "<h1>Search</h1>");
  set("th:empty, th:has(> p:empty)", "role", "cell");
  document.querySelectorAll("pre, .output, .table-wrapper, math, :has(> math)").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  });
});
