// SPDX-License-Identifier: Apache-2.0
/** A Vue app. */
import { createApp } from "vue";
import App from "./App.vue";

createApp(App).mount("#app");
