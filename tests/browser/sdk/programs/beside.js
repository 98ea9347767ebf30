// SPDX-License-Identifier: Apache-2.0
/** For every payload: the refusal or null, the time that step 9 took, and how long the page was busy without a break. */
async ({payloads, folder}) => {
  const [{bytesOf, digestOf}, {checkBeside}] = await Promise.all(["canonical", "beside"].map((name) => import(`${folder}${name}.js`)));
  let last = 0, longest = 0;
  const look = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  setInterval(look, 4);
  const found = [];
  for (const payload of payloads) {
    const bytes = bytesOf(payload), digest = await digestOf(bytes);
    last = performance.now(), longest = 0;
    const began = performance.now(), values = [];
    const run = async () => { for await (const value of checkBeside(bytes, digest, [0n, 1n])) values.push(value); };
    const said = await run().then(() => null, (e) => [e.code, e.field, e.said?.[0], String(e.said?.slice(1))]);
    const took = performance.now() - began;
    await new Promise((done) => setTimeout(done, 20));
    found.push({said, took, longest, yielded: values.length});
  }
  return found;
}
