// SPDX-License-Identifier: Apache-2.0
async ({link, at, options}) => {
  const {withSeams} = await import("/sdk/testing.js");
  const {Client} = await import("/sdk/index.js");
  window.events = [];
  window.client = await Client.open(link, withSeams({spreadMs: 0, onEvent: (e) => events.push(e.name), ...options}, {now: () => at}));
}
