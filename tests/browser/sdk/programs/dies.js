// SPDX-License-Identifier: Apache-2.0
/**
 * Shows the element, answers whatever it asks, and waits until the answer has arrived. Reports to the server, before anything else
 * happens, which questions are shown and when the page comes to the point at which it dies. Returns the number of points passed,
 * or the text of an error that is shown.
 */
async ({link, at, dies}) => {
  let points = 0;
  const tell = (path) => {
    const request = new XMLHttpRequest();
    request.open("GET", path, false); // nothing else runs in the page meanwhile
    request.send();
  };
  const point = () => {
    if (++points === dies) tell("/dies");
  };
  const around = (owner, name, after = (result) => result) => {
    const system = owner[name];
    owner[name] = function (...given) {
      point();
      return after(system.apply(this, given));
    };
  };
  const commits = (transaction) => {
    transaction.addEventListener("complete", point); // the first listener: after the commit, and before the SDK knows of it
    return transaction;
  };
  around(IDBFactory.prototype, "open");
  around(IDBDatabase.prototype, "transaction", commits);
  for (const name of ["get", "getAll", "put", "add", "delete"]) around(IDBObjectStore.prototype, name);
  around(crypto, "getRandomValues");
  around(globalThis, "fetch", (reply) => reply.finally(point));
  around(ShadowRoot.prototype, "replaceChildren");
  const {FranklySurvey} = await import("/bundle/element.js"), {withSeams} = await import("/bundle/testing.js");
  const survey = new FranklySurvey(), root = survey.shadowRoot;
  const until = (found) => new Promise((resolve) => {
    const look = () => found() && (seen.disconnect(), resolve(found()));
    const seen = new MutationObserver(look);
    seen.observe(root, {childList: true, subtree: true, characterData: true});
    look();
  });
  survey.options = withSeams({spreadMs: 0}, {now: () => at});
  survey.setAttribute("link", link);
  document.querySelector("main").append(survey);
  await until(() => root.querySelector("fieldset, #status, [role=alert]"));
  const asked = [...root.querySelectorAll("fieldset")];
  if (asked.length) {
    tell(`/shown?${asked.map(({id}) => id.replace("question-", "")).join()}`);
    for (const field of asked) field.querySelector("input").click();
    root.querySelector("#send").click();
  }
  await until(() => /has arrived|answered already/.test(root.querySelector("#status")?.textContent ?? "") || root.querySelector("[role=alert], .error:not(:empty)"));
  return root.querySelector("[role=alert], .error:not(:empty)")?.textContent ?? points;
}
