// SPDX-License-Identifier: Apache-2.0
async ({envelopes, now}) => {
  const [canonical, dsse, keys] = await Promise.all(["canonical", "dsse", "keys"].map((name) => import(`/sdk/${name}.js`)));
  const found = [];
  for (const envelope of envelopes)
    found.push(await keys.acceptKeys(canonical.unbase64(envelope), now, dsse.webcryptoVerify)
      .then(() => null, (error) => (error.code ? [error.code, error.field] : String(error))));
  return found;
}
