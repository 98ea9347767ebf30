// SPDX-License-Identifier: Apache-2.0
async ({kind, params, tape}) => {
  const [{kinds}, {loadParts}] = await Promise.all([import("/sdk/mechanisms.js"), import("/sdk/parts.js")]);
  await loadParts(["kinds", "agreement"]);
  const mechanism = kinds()[kind].read(params, "m"), symbols = [];
  // The truth of a form is the index of each question's choice; the last question varies fastest.
  const truths = params.choices
    ? params.choices.reduce((all, n) => all.flatMap((head) => Array.from({length: n}, (_, x) => [...head, x])), [[]])
    : [...Array(mechanism.answers).keys()];
  for (const truth of truths)
    for (let u = 0; u < 2 ** tape; u++) {
      let left = tape, bits = u;
      try {
        symbols.push(mechanism.sample(truth, (size) => {
          if (size > left) throw new RangeError("short");
          const drawn = bits % 2 ** size;
          left -= size;
          bits = (bits - drawn) / 2 ** size;
          return drawn;
        }));
      } catch (error) {
        symbols.push(null);
      }
    }
  const text = new TextEncoder().encode(JSON.stringify(symbols));
  return Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", text)), (b) => b.toString(16).padStart(2, "0")).join("");
}
