// SPDX-License-Identifier: Apache-2.0
/** Render the React component of docs/browser.md on a server, and write the markup. */
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { Survey } from "./.test-component.mjs";

console.log(JSON.stringify(renderToString(createElement(Survey, { link: "https://host/s/ID", onSent: () => undefined }))));
