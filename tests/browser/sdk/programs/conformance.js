// SPDX-License-Identifier: Apache-2.0
async (given) => {
  const {Client, Policy, readLink} = await import("/sdk-under-test/index.js");
  const {withSeams} = await import("/sdk-under-test/testing.js");
  const {cap, max_ceiling: maxCeiling, allow_unpinned: allowUnpinned, require_log: requireLog, delta_cap: deltaCap,
    final_surveys: finalSurveys} = given.policy;
  const policy = {...(cap != null && {cap}), ...(maxCeiling != null && {maxCeiling}), ...(deltaCap != null && {deltaCap}),
    ...(finalSurveys != null && {finalSurveys}), allowUnpinned, requireLog};
  // A draw of n random bits takes the next n bits, lowest first. The report's id is the last draw.
  const tape = (given.bits ?? []).map(([size, value]) => [size, BigInt("0x" + value)]);
  const randomBits = (size) => {
    const entry = tape[0], low = entry[1] & ((1n << BigInt(size)) - 1n);
    entry[0] -= size;
    entry[1] >>= BigInt(size);
    if (!entry[0]) tape.shift();
    return Number(low);
  };
  const system = crypto.getRandomValues.bind(crypto);
  if (given.bits) crypto.getRandomValues = (bytes) => {
    if (bytes.length !== 16) return system(bytes);
    const [, value] = tape.shift();
    bytes.set(value.toString(16).padStart(32, "0").match(/../g).map((pair) => parseInt(pair, 16)));
    return bytes;
  };
  const seams = {...(given.bits && {randomBits}), ...(given.at != null && {now: () => given.at})};
  const options = withSeams({
    policy, spreadMs: 0, keys: given.keys ? Uint8Array.from(atob(given.keys), (c) => c.charCodeAt(0)) : null,
  }, seams);
  const receipt = ({status, code}) => ({status, code});
  const commands = {
    init: () => {
      const {survey, digest} = readLink(given.link);
      new Policy(policy);
      return {survey, digest};
    },
    refresh: async () => {
      const client = await Client.open(given.link, options), {survey} = client;
      const receipts = (await client.flush(0)).map(receipt);
      const questions = Object.fromEntries(client.questions.map(({id, choices}) => [id, choices.map((choice) => choice.id)]));
      const told = {survey: survey.survey, version: survey.version, digest: survey.digest, signed_by: client.signedBy, questions,
        explanation: String(client.explain()), receipts};
      client.close();
      return told;
    },
    plan: async () => {
      const client = await Client.open(given.link, options);
      try {
        const {questions, asked, of, arm} = await client.plan();
        return {questions, asked, of, ...(arm && {arm})};
      } finally {
        client.close();
      }
    },
    answer: async () => {
      const client = await Client.open(given.link, options);
      try {
        return receipt(await client.answer(given.answers, {strata: given.strata ?? {}, token: given.token ?? null, patienceMs: 1000 * (given.patience_s ?? 0)}));
      } finally {
        client.close();
      }
    },
  };
  try {
    return await commands[given.command]();
  } catch (error) {
    // Any other error is a bug in the SDK and must not be reported as a refusal.
    if (!error.code || typeof error.detail !== "string") throw error;
    return {failed: error.constructor.name, code: error.code, detail: error.detail, field: error.field};
  }
}
