// SPDX-License-Identifier: Apache-2.0
/** Show a survey in an element, watch its client, and define the functions of test_redraws.py. */
async ([link, other, at]) => {
  const names = ["element", "client", "errors", "testing"], modules = names.map((name) => import(`/sdk/${name}.js`));
  const [{FranklySurvey}, {Client}, errors, {withSeams}] = await Promise.all(modules), {open, prototype: {answer}} = Client;
  const element = new FranklySurvey(), root = element.shadowRoot, main = document.querySelector("main");
  Object.assign(window, {link, other, errors, element, root, main, opened: 0, given: []});
  Client.open = function (...all) {
    opened++;
    return open.apply(this, all);
  };
  Client.prototype.answer = async function (...all) {
    await window.held;
    if (window.fails) throw fails;
    given.push(all);
    return answer.apply(this, all);
  };

  /** Enter values: [id in the form, value]; a value of null opens the element. */
  window.fill = (entered) => {
    for (const [id, value] of entered) {
      if (value === null) {
        root.querySelector(id).open = true;
        continue;
      }
      const place = root.getElementById(id), choice = place.querySelector(`input[value="${value}"]`);
      if (choice) {
        if (!choice.checked) choice.click();
        continue;
      }
      const control = place.matches("input") ? place : place.querySelector("[type=number], select");
      control.value = value;
      control.dispatchEvent(new Event("input", {bubbles: true}));
    }
  };

  /** Return whether each field is hidden, and what it contains. */
  window.read = () => {
    const state = {details: root.querySelector("details")?.open, invitation: root.getElementById("invitation")?.value};
    for (const {id, hidden, elements} of root.querySelectorAll("fieldset"))
      state[id] = [hidden, ...[...elements].map((one) => (one.labels.length ? one.checked : one.value))];
    return state;
  };

  const done = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = reject;
  });

  /** Return all that pages can write to, the element's attributes, and every control whose markup contains its state. */
  window.written = async () => {
    const rows = [], marked = "[checked], :not(#language) > [selected], [type=number][value], [type=text][value]";
    for (const {name} of await indexedDB.databases()) {
      const db = await done(indexedDB.open(name));
      for (const store of db.objectStoreNames) {
        const place = db.transaction(store).objectStore(store), keys = await done(place.getAllKeys());
        const values = await done(db.transaction(store).objectStore(store).getAll());
        rows.push([name, store, keys, values.map((value) => JSON.stringify(value))]);
      }
      db.close();
    }
    const attributes = [...element.attributes].map(({name, value}) => [name, value]);
    return JSON.stringify([
      rows, {...localStorage}, {...sessionStorage}, await caches.keys(), document.cookie, location.href, history.state, window.name,
      document.title, attributes, [...root.querySelectorAll(marked)].map(({outerHTML}) => outerHTML),
    ]);
  };

  /** Let all tasks run that a change has caused. */
  window.turn = async () => {
    for (let i = 0; i < 20; i++) await scheduler.yield();
  };

  window.follow = (address) => element.setAttribute("link", address);

  /** Make a change, and wait until the element has opened a survey. */
  window.opens = (change) => new Promise((resolve) => {
    element.addEventListener("frankly-opened", resolve, {once: true});
    change();
  });

  /** Hold the next answers back until `release` is called. */
  window.hold = () => {
    window.held = new Promise((resolve) => { window.release = resolve; });
  };

  element.options = withSeams({spreadMs: 0}, {now: () => at});
  element.setAttribute("link", link);
  main.append(element);
}
