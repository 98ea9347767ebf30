// SPDX-License-Identifier: Apache-2.0
/** This example reads the pinned link from `?link=` in the page's address; a real app has it as a constant. */
export const link = new URLSearchParams(location.search).get("link") ?? "";
