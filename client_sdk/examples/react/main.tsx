// SPDX-License-Identifier: Apache-2.0
/** A React app that shows the survey as a component, then the result. */
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { FranklySurvey } from "@frankly/sdk/react";
import { link } from "../link";

function App() {
  const [said, setSaid] = useState("");
  return (
    <>
      <FranklySurvey link={link} onSealed={({ survey }) => setSaid(`answered ${survey}`)} onError={({ code }) => setSaid(code)} />
      <p role="note">{said}</p>
    </>
  );
}

createRoot(document.getElementById("app")!).render(<StrictMode><App /></StrictMode>);
