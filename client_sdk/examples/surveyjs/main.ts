// SPDX-License-Identifier: Apache-2.0
/** A form made with SurveyJS, answered through Frankly. */
import { Model, settings } from "survey-core";
import { ContrastLight } from "survey-core/themes";
import "survey-core/survey.i18n";
import { renderSurvey } from "survey-js-ui";
import "survey-core/survey-core.fontless.css";
import { protect } from "@frankly/sdk/surveyjs";
import { link } from "../link";
import form from "./form.json";

settings.titleTags.survey = "h1"; // the form is the whole page
const model = new Model(form);
model.applyTheme(ContrastLight); // the default theme's colours are too faint for WCAG
model.locale = document.documentElement.lang = new URLSearchParams(location.search).get("locale") ?? "en";
model.onComplete.add(({ data }) => document.body.setAttribute("data-seen", JSON.stringify(data)));
renderSurvey(model, document.getElementById("app")!);
protect(model, link).then(({ receipt }) => receipt).then(({ status }) => document.body.setAttribute("data-status", status));
