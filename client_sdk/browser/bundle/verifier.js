// SPDX-License-Identifier: Apache-2.0
import{requireAllPrivate as a,readSurvey as s,DocumentRejected as e}from"./core.js";globalThis.onmessage=async({data:{payload:o,digest:i}})=>{const n=await a(s(o,i)).then(()=>null,a=>{if(a instanceof e)return[a.reason,a.field,...a.said]});globalThis.postMessage(n)};
