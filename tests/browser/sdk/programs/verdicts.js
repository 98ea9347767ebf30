// SPDX-License-Identifier: Apache-2.0
async ({envelopes, key, now}) => {
  const [canonical, dsse, opening, {check}] = await Promise.all(["canonical", "dsse", "opening", "verifier"].map((name) => import(`/sdk/${name}.js`)));
  const link = {origin: "https://collect.example", survey: "ab".repeat(16), digest: null};
  const keys = {publisher: {keys: [canonical.unhex(key)], threshold: 1}, log: null};
  const found = [];
  for (const envelope of envelopes)
    found.push(await opening.accept({link, now, verify: dsse.webcryptoVerify, wantsLog: false, check}, canonical.unbase64(envelope), undefined, keys)
      .then(() => null, (error) => (error.code ? [error.code, error.field] : String(error))));
  return found;
}
