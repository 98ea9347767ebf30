// SPDX-License-Identifier: Apache-2.0
import{SEAMS as o}from"./core.js";const r=(r,t)=>({...r,[o]:t});export{r as withSeams};
