// SPDX-License-Identifier: Apache-2.0
declare module "*.vue" {
  const component: import("vue").Component;
  export default component;
}
declare module "*.css";
