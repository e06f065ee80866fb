// Who grades and keeps progress: the local server, or this browser. Both offer the same.

import { local } from "./local.js";
import { remote } from "./remote.js";
import { page } from "./study.js";

export const backend = page.mode === "server" ? remote : local;

let reading = null;

// Settings, answers and marks, read once for a page; `again` reads them anew.
export function progress(again = false) {
  if (again || !reading) {
    reading = backend.progress();
    reading.catch(() => { reading = null; });
  }
  return reading;
}
