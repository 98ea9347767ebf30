// SPDX-License-Identifier: Apache-2.0
import{readSurvey as a,requireAllPrivate as s,DocumentRejected as e}from"./core.js";globalThis.onmessage=async({data:{payload:o,digest:n}})=>{const t=await a(o,n).then(a=>s(a)).then(()=>null,a=>{if(a instanceof e)return[a.reason,a.field,...a.said]});globalThis.postMessage(t)};
