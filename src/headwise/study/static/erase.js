// Erasing all progress: asked again first, with what would be lost and a way to keep it.

import { backend } from "./backend.js";
import { draft, make, many, page } from "./study.js";

const counted = (found) => Object.entries(found).map(([kind, count]) => many(count, kind.slice(0, -1))).join(", ").replace(/, ([^,]*)$/, " and $1");

// `save` exports; `erased` is told when everything is gone.
export function erasing(found, save, erased) {
  const told = make("p", { class: "settings-told", tabindex: "-1" }); // gets the focus, which reads it out
  const place = make("div", { class: "erase-ask" });
  const ask = make("button", { type: "button", class: "second", onclick: () => open() }, "Erase progress");
  const say = (text) => { told.textContent = text; told.focus(); };
  const close = () => { place.replaceChildren(); ask.hidden = false; };

  async function open() {
    told.textContent = "";
    let kept;
    try {
      kept = await backend.kept();
    } catch (error) {
      say(error.message);
      return;
    }
    const whose = page.mode === "server" ? `those of the profile ${found.profile}, in every guide` : "those of every guide on this web site, in this browser";
    const warning = make("p", { id: "erase-warning" }, `${counted(kept)} will be gone for good: ${whose}. Settings stay. Only an exported file can bring them back.`);
    const keep = make("button", { type: "button", class: "second", onclick: () => { close(); ask.focus(); } }, "Keep everything");
    const first = make("button", { type: "button", class: "second", onclick: save }, "Export first");
    const sure = make("button", { type: "button", class: "danger", "aria-describedby": "erase-warning", onclick: () => erase(sure) }, "Erase for good");
    place.replaceChildren(make("div", { role: "group", "aria-label": "Erase progress?", tabindex: "-1" }, warning, make("p", { class: "erase-answers" }, keep, " ", first, " ", sure)));
    ask.hidden = true;
    place.firstChild.focus();
  }

  async function erase(sure) {
    sure.disabled = true;
    try {
      const gone = await backend.erased();
      draft.drop(`${found.profile}/`);
      close();
      say(`Erased: ${counted(gone)}.`);
      await erased();
    } catch (error) {
      sure.disabled = false;
      say(error.message);
    }
  }

  return make("div", { class: "settings-part" },
    make("h2", {}, "Start over"),
    make("p", {}, "Erase all reviews, answers and marks. You are asked once more."),
    make("p", {}, ask), place, told);
}
