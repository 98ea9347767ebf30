// SPDX-License-Identifier: Apache-2.0
async (cases) => {
  const [{work, MAX_WORK, MAX_COUNTS}, {kinds}, {loadParts}] = await Promise.all(["audit", "mechanisms", "parts"].map((name) => import(`/sdk/${name}.js`)));
  await loadParts(["kinds", "rare"]);
  const found = [];
  for (const {kind, params, claim} of cases) {
    found.push(work([{mechanism: kinds()[kind].read(params, "m"), claim}], [], Infinity));
  }
  return {found, limits: [MAX_WORK, MAX_COUNTS]};
}
