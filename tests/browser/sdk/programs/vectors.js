// SPDX-License-Identifier: Apache-2.0
async ({file, vectors}) => {
  const [canonical, dsse, documents, opening, keys, log, mechanisms, {loadParts}, {check}, survey_] = await Promise.all(
    "canonical dsse documents opening keys log mechanisms parts verifier survey".split(" ").map((name) => import(`/sdk/${name}.js`)));
  const bytes = canonical.bytesOf, verify = dsse.webcryptoVerify, unhex = canonical.unhex;
  const code = async (work) => { try { return [await work(), null, null]; } catch (e) { return [null, e.code ?? String(e), e.field ?? null]; } };
  const all = async (cases, work) => { const out = []; for (const one of cases) out.push(await code(() => work(one))); return out; };
  const runs = {
    canonical: async (v) => ({
      good: await all(v.good, async ({text}) => (canonical.loads(bytes(text)), canonical.digestOf(bytes(text)))),
      bad: await all(v.bad, ({base64}) => canonical.loads(canonical.unbase64(base64))),
    }),
    envelopes: (v) => all(v.cases, async (one) => {
      const envelope = dsse.readEnvelope(bytes(one.envelope), v.payload_type);
      await dsse.requireSigned(envelope, {keys: one.trusted.map((name) => unhex(v.public_keys[name])), threshold: one.threshold}, verify);
      return btoa(String.fromCharCode(...envelope.payload));
    }),
    documents: (v) => all(v.documents, async ({payload}) => {
      const digest = await canonical.digestOf(bytes(payload));
      await documents.requireAllPrivate(await documents.readSurvey(bytes(payload), digest));
      return digest;
    }),
    keys: (v) => all(v.cases, async (one) => {
      const known = one.known && {envelope: bytes(one.known), chain: one.known_root};
      const proven = await keys.proveChain(one.chain.map(bytes), known, Date.parse(one.now), verify);
      return [proven.keys.version, proven.chain];
    }),
    acceptance: (v) => all(v.cases, async (one) => {
      const publisher = {keys: v.publisher.public_keys.map(unhex), threshold: v.publisher.threshold};
      const link = {origin: v.origin, survey: v.survey, digest: one.pin};
      const opening_ = {link, now: Date.parse(one.now), verify, wantsLog: false, check};
      const before = one.remembered && {...one.remembered, envelope: bytes(v.cases[0].envelope)};
      return (await opening.accept(opening_, one.envelope === null ? new Uint8Array(dsse.MAX_ENVELOPE_BYTES + 1) : bytes(one.envelope), before ?? undefined, {publisher, log: null})).survey.digest;
    }),
    sampling: async (v) => (await loadParts(["kinds", "agreement"]), {
      draws: v.mechanisms.map(({mechanism}) => mechanisms.kinds()[mechanism.kind].read(mechanism, "m")).map((m, i) =>
        v.mechanisms[i].draws.map(({truth, bits}) => {
          // A draw of n random bits takes the next n bits, lowest first.
          const tape = bits.map(([size, value]) => [size, BigInt("0x" + value)]);
          const symbol = m.sample(truth, (size) => {
            const entry = tape[0], low = entry[1] & ((1n << BigInt(size)) - 1n);
            entry[0] -= size; entry[1] >>= BigInt(size);
            if (!entry[0]) tape.shift();
            return Number(low);
          });
          return [symbol, tape.length];
        })),
      reports: await Promise.all(v.reports.map(async (one) => {
        const survey = await documents.readSurvey(bytes(one.document), await canonical.digestOf(bytes(one.document)));
        const given = JSON.parse(one.report);
        return [survey_.reportLength(survey), canonical.textOf(survey_.reportBytes(
          {doc: survey.digest, id: given.id, y: given.y, strata: one.strata, token: one.token}, survey_.reportLength(survey)))];
      })),
    }),
    plans: async (v) => {
      const surveys = {}, out = {documents: [], plans: [], answers: []};
      for (const {name, payload} of v.documents) {
        const survey = surveys[name] = await documents.readSurvey(bytes(payload), await canonical.digestOf(bytes(payload)));
        documents.requireAllPrivate(survey);
        out.documents.push(survey.digest);
      }
      const {draw, needed, partly, only, plansIn, Plan} = await import("/sdk/plans.js"), {settled} = await import("/sdk/answers.js");
      const {viewOf} = await import("/sdk/arms.js");
      const tapeOf = (bits) => {
        const tape = bits.map(([size, value]) => [size, BigInt("0x" + value)]);
        return [tape, (size) => {
          const entry = tape[0], low = entry[1] & ((1n << BigInt(size)) - 1n);
          entry[0] -= size; entry[1] >>= BigInt(size);
          if (!entry[0]) tape.shift();
          return Number(low);
        }];
      };
      const fit = (survey, given, plans) => {
        try { return [only(settled(given, survey_.questionsOf(survey), partly), needed(survey, plans)), null, null]; } catch (e) { return [null, e.code ?? String(e), e.field ?? null]; }
      };
      for (const {document, bits, given, rest} of v.plans) {
        const whole = surveys[document], [tape, read] = tapeOf(bits), stored = draw(whole, read), plans = plansIn(stored);
        const survey = whole.arms ? viewOf(whole, stored.arm) : whole, asked = needed(survey, plans);
        const {questions, asked: number, of, arm} = new Plan(asked, survey_.questionsOf(survey), survey.arm), [chosen] = fit(survey, given, plans), [left, more] = tapeOf(rest), drawn = [...plans];
        const y = survey.blocks.map(({mechanism, questions: own, ask}) => {
          const positions = own.map(({id, choices}) => choices.findIndex((choice) => choice.id === chosen[id]));
          return mechanism.sample(mechanism.kind === "agreement" ? positions : positions.reduce((row, x, i) => row * own[i].choices.length + x, 0), more, ask && drawn.shift());
        });
        const open = [...survey_.openQuestions(survey).map(({id}) => id), ...Object.entries(survey_.drawnArm(survey)).flat()];
        out.plans.push({plan: plans, questions, asked: number, of, chosen, y, left: tape.length + left.length, arm, open});
      }
      for (const {plan, given} of v.answers) out.answers.push(fit(surveys["rules and boxes"], given, Object.values(plan)));
      return out;
    },
    replies: async ({id, cases}) => {
      const {judge} = await import("/sdk/delivery.js");
      return cases.map(({status, body}) => [false, true].map((closed) => {
        const receipt = judge({status, body: bytes(body)}, id, closed);
        return [receipt.status, receipt.code];
      }));
    },
    log: async (v) => ({
      roots: await Promise.all(v.roots.map(async (_, n) => canonical.hex(await log.treeRoot(v.leaves.slice(0, n).map(unhex))))),
      good: await all(v.inclusion, ({index, size, path}) => log.requireInclusion(unhex(v.leaves[index]), index, {size, root: unhex(v.roots[size])}, path.map(unhex))),
      bad: await all(v.inclusion_bad, (one) => log.requireInclusion(unhex(one.leaf), one.index, {size: one.size, root: unhex(one.root)}, one.path.map(unhex))),
      documents: await all(v.documents.cases, async (one) => {
        const proof = log.readProof(bytes(one.proof));
        const role = keys.logRole(v.documents.log, "log");
        await log.requireWatched(proof.head, role, Date.parse(v.documents.now), verify);
        await log.requireInclusion(await log.documentLeaf(one.digest), proof.index, proof.head, proof.path);
        return proof.head.size;
      }),
    }),
    privacy: async (v) => all(v.documents, async (one) => {
      const payload = JSON.parse(v.payloads[one.name]), path = one.path.split("."), last = path.pop();
      path.reduce((at, key) => at[key], payload)[last] = one.value;
      const text = bytes(canonical.dumps(payload)), digest = await canonical.digestOf(text);
      if (digest !== one.digest) throw new Error("not the document of the vector");
      await documents.requireAllPrivate(await documents.readSurvey(text, digest));
    }),
  };
  return runs[file](vectors);
}
