// SPDX-License-Identifier: Apache-2.0
/** Open a survey with arms; `first` are the bits that draw the arm, by default random ones. */
async ({link, at, first = null, options = {}}) => {
  const [{withSeams}, {Client}, {systemBits}] = await Promise.all(["testing", "index", "mechanisms"].map((name) => import(`/sdk/${name}.js`)));
  let left = first;
  const randomBits = (bits) => {
    if (left === null) return systemBits(bits);
    const number = bits === 16 ? left : NaN; // the arm is drawn before all else
    left = null;
    return number;
  };
  window.client = await Client.open(link, withSeams({spreadMs: 0, policy: {cap: "5"}, ...options}, {now: () => at, randomBits}));
}
