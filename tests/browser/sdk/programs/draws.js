// SPDX-License-Identifier: Apache-2.0
async ({kind, params, tape}) => {
  const {KINDS} = await import("/sdk/mechanisms.js");
  const mechanism = KINDS[kind].read(params, "m"), symbols = [];
  for (let truth = 0; truth < mechanism.answers; truth++)
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
