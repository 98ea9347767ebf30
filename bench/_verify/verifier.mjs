// SPDX-License-Identifier: Apache-2.0
/** Read one case a line, `{kind, params, claims}`, and answer each with the CPU seconds that judging it took. */

import { createInterface } from "node:readline";
import * as audit from "../../client_sdk/browser/src/audit.js";
import { KINDS } from "../../client_sdk/browser/src/mechanisms.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, params, claims } = JSON.parse(line);
  await audit.prepare(claims);
  const before = process.cpuUsage();
  const mechanism = KINDS[kind].read(params, "m");
  audit.statedCeiling(mechanism);
  for (const claim of claims) {
    try {
      audit.requirePrivate(mechanism, claim);
    } catch (error) {
      if (error.code !== "document_privacy") throw error;
    }
  }
  const { user, system } = process.cpuUsage(before);
  const work = audit.work(claims.map((claim) => ({ mechanism, claim })), [], Infinity);
  console.log(JSON.stringify([(user + system) / 1e6, work]));
}
