// SPDX-License-Identifier: Apache-2.0
/** Uses of the packages' types; each marked line must be an error. */
import { FranklySurvey, useFrankly } from "@frankly/sdk/react";
import { protect } from "@frankly/sdk/surveyjs";
import { useFrankly as useFranklyInVue } from "@frankly/sdk/vue";
import { Model } from "survey-core";

export const plain = <frankly-survey link="https://host/s/ID" final-surveys="a b" />;
// @ts-expect-error the attribute must be a string
export const wrongAttribute = <frankly-survey link={5} />;
export const component = <FranklySurvey enabled={false} finalSurveys={["a"]} onSent={({ name }) => name === "sent"} />;
// @ts-expect-error there is no event of this name
export const wrongName = <FranklySurvey onSent={({ name }) => name === "posted"} />;

document.createElement("frankly-survey").addEventListener("frankly-error", ({ detail }) => detail.code.length);
// @ts-expect-error errors have no receipt
document.addEventListener("frankly-error", ({ detail }) => detail.receipt);

export function Form() {
  const state = useFrankly("https://host/s/ID", { enabled: true, store: "mine" });
  if (state.status === "ready") return <p>{state.client.questions.length}</p>;
  // @ts-expect-error the client may be missing at this point
  return <p>{state.client.questions.length}</p>;
}

export const ofVue = useFranklyInVue(() => "https://host/s/ID");
export const failed = ofVue.value.status === "failed" && ofVue.value.error.message;

export const form = protect(new Model({}), "https://host/s/ID", { unprotected: "keep", onWarning: ({ reason }) => reason === "address" });
export const receipt = form.then(({ receipt }) => receipt).then(({ status }) => status === "sent");
// @ts-expect-error there is no reason of this name
export const wrongReason = protect(new Model({}), "https://host/s/ID", { onWarning: ({ reason }) => reason === "leak" });
