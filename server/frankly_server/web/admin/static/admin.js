// SPDX-License-Identifier: Apache-2.0
// Comforts only: every page works without this file.
"use strict";

// A job's page follows its job, and opens the survey again when it is over.
const job = document.querySelector("[data-job]");
if (job) {
  const words = job.querySelector("[role=status]");
  const bar = job.querySelector("progress");
  const follow = async () => {
    try {
      const answer = await fetch(job.dataset.job, { credentials: "same-origin" });
      const told = await answer.json();
      bar.value = told.done;
      if (told.state !== "running" && told.state !== "cancelling") {
        location.reload();
        return;
      }
      words.textContent = told.detail ? `Designing ${told.detail}: ${told.done} of ${told.total} done.` : words.textContent;
    } catch {
      words.textContent = "The server does not answer; trying again.";
    }
    setTimeout(follow, 700);
  };
  setTimeout(follow, 500);
}

// A button beside each text that is meant to be copied.
for (const text of document.querySelectorAll("pre[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  text.after(button);
}
