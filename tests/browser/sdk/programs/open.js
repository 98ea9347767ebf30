// SPDX-License-Identifier: Apache-2.0
async ({link, at, options}) => {
  const {Client} = await import("/sdk/index.js");
  window.events = [];
  window.client = await Client.open(link, {now: () => at, spreadMs: 0, onEvent: (e) => events.push(e.name), ...options});
}
