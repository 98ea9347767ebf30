// SPDX-License-Identifier: Apache-2.0
/**
 * A host that keeps, logs and sends all that it gets: every event, the address, and its own elements. For every number, a new
 * respondent answers through the element. Returns the different sequences of events, and the different markups of the page.
 */
async ({ link, at, numbers }) => {
  const [{ FranklySurvey }, { withSeams }] = await Promise.all([import("/sdk/element.js"), import("/sdk/testing.js")]);
  const main = document.querySelector("main"), sequences = new Set(), markups = new Set();
  let told = [], wake = () => undefined;
  const keep = (text) => {
    localStorage.setItem(`${localStorage.length % 1000}`, text);
    console.log(text);
    return fetch(`/host?told=${encodeURIComponent(text)}`);
  };
  for (const name of ["opened", "planned", "sealed", "sent", "queued", "refused", "language", "error"])
    addEventListener(`frankly-${name}`, ({ type, detail }) => {
      told.push([type, detail]);
      wake();
    });
  const until = async (isDone) => {
    while (!isDone()) await new Promise((done) => (wake = done));
  };
  for (const [i, number] of numbers.entries()) {
    told = [];
    const element = Object.assign(new FranklySurvey(), { options: withSeams({}, { now: () => at }) }), root = element.shadowRoot;
    element.setAttribute("store", "of one person");
    element.setAttribute("link", link);
    main.append(element);
    const watch = new MutationObserver(() => wake());
    watch.observe(root, { childList: true, subtree: true });
    await until(() => root.querySelector("form"));
    const age = root.querySelector("input[type=number]"), work = root.querySelectorAll("input[name=work]")[i % 2];
    age.value = String(number);
    work.checked = true;
    root.querySelectorAll("input[type=checkbox]").forEach((box, k) => (box.checked = Boolean((i >> k) & 2)));
    root.querySelector("form").dispatchEvent(new Event("input"));
    markups.add(document.documentElement.outerHTML + location.href + document.cookie);
    root.querySelector("button[type=submit]").click();
    await until(() => told.some(([name]) => name === "frankly-sent"));
    markups.add(document.documentElement.outerHTML + location.href + document.cookie);
    watch.disconnect();
    element.remove();
    await new Promise((done) => setTimeout(done));
    await new Promise((done, fail) => {
      const gone = indexedDB.deleteDatabase("of one person");
      Object.assign(gone, { onsuccess: done, onerror: fail });
    });
    const sequence = JSON.stringify(told);
    if (!sequences.has(sequence)) await keep(sequence);
    sequences.add(sequence);
  }
  return [[...sequences], [...markups]];
};
