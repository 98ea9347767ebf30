// SPDX-License-Identifier: Apache-2.0
async ({code, given}) => {
  try { return {value: await (0, eval)(code)(given)}; }
  catch (error) { return {code: error.code ?? String(error), field: error.field ?? null, detail: error.detail, receipt: error.receipt}; }
}
