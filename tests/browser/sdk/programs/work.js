// SPDX-License-Identifier: Apache-2.0
async (cases) => {
  const [{work, prepare, MAX_WORK, MAX_COUNTS}, {KINDS}] = await Promise.all([import("/sdk/audit.js"), import("/sdk/mechanisms.js")]);
  const found = [];
  for (const {kind, params, claim} of cases) {
    await prepare([claim]);
    found.push(work([{mechanism: KINDS[kind].read(params, "m"), claim}], [], Infinity));
  }
  return {found, limits: [MAX_WORK, MAX_COUNTS]};
}
