// SPDX-License-Identifier: Apache-2.0
/** For each path on stdin, print CPU seconds to read and to verify the document, and its error code. */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { digestOf } from "../../client_sdk/browser/src/canonical.js";
import { readSurvey, requireAllPrivate } from "../../client_sdk/browser/src/documents.js";
import { reportLevel } from "../../client_sdk/browser/src/levels.js";

async function seconds(trial) {
  const before = process.cpuUsage();
  const found = await trial();
  const { user, system } = process.cpuUsage(before);
  return [(user + system) / 1e6, found];
}

for await (const path of createInterface({ input: process.stdin })) {
  const bytes = new Uint8Array(readFileSync(path)), digest = await digestOf(bytes);
  let code = null;
  const failed = (error) => {
    if (!error.code) throw error;
    code = error.code;
  };
  const [read, survey] = await seconds(async () => {
    try {
      return await readSurvey(bytes, digest);
    } catch (error) {
      return failed(error);
    }
  });
  const judge = async () => {
    try {
      requireAllPrivate(survey);
    } catch (error) {
      failed(error);
    }
    reportLevel(survey);
  };
  const [judged] = survey ? await seconds(judge) : [0];
  console.log(JSON.stringify({ read, judged, code }));
}
