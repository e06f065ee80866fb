// The form for what a learner may choose, and for taking progress elsewhere.

import { backend } from "./backend.js";
import { erasing } from "./erase.js";
import { make, many, page } from "./study.js";

// `again` shows what is kept anew, after everything was erased.
export function settingsForm(place, found, again) {
  const { part, save, clear } = moving();
  place.classList.add("settings");
  place.replaceChildren(whose(found), choices(found.settings), part, erasing(found, save, () => { clear(); return again(); }));
}

function whose(found) {
  const where = page.mode === "server"
    ? make("p", {}, "Progress of the profile ", make("strong", {}, found.profile), ", kept on this computer in ", make("code", {}, found.file), ". Nothing is sent anywhere else.")
    : make("p", {}, `Progress is kept ${backend.where}. Browsers may delete such data, after weeks without a visit or when you clear it: export it now and then.`);
  const gone = backend.keeps() ? null : make("p", { class: "not-saved" }, backend.gone);
  return make("div", { class: "settings-part" }, make("h2", {}, "Where it is kept"), where, gone);
}

function choices(settings) {
  const told = make("p", { role: "status", class: "settings-told" });
  const day = make("input", { type: "time", id: "day-start", required: true, value: settings.day_start });
  const fresh = make("input", { type: "number", id: "new-per-day", min: 0, max: 9999, step: 1, required: true, value: settings.new_per_day });
  const keys = make("input", { type: "checkbox", id: "shortcuts", checked: settings.shortcuts });
  const form = make("form", { class: "settings-part" },
    make("h2", {}, "Flashcards"),
    make("p", {}, make("label", { for: "day-start" }, "A day begins at"), " ", day),
    make("p", { class: "settings-help" }, "Cards of a day are due until the next one begins: with 04:00, an evening that runs past midnight is still the same day."),
    make("p", {}, make("label", { for: "new-per-day" }, "New cards a day"), " ", fresh),
    make("p", {}, keys, " ", make("label", { for: "shortcuts" }, "Single keys turn and rate cards (space, 1 to 4, U)")),
    make("p", {}, make("button", { type: "submit" }, "Save"), " "), told);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await backend.settings({ day_start: day.value.slice(0, 5), new_per_day: Number(fresh.value), shortcuts: keys.checked });
      told.textContent = "Saved.";
    } catch (error) {
      told.textContent = error.message;
    }
  });
  return form;
}

function moving() {
  const told = make("p", { role: "status", class: "settings-told" }); // said by that: the focus stays on the button
  const say = (text) => { told.textContent = text; };
  const file = make("input", { type: "file", id: "import-file", accept: ".json,application/json" });
  const save = async () => {
    try {
      const text = await backend.exported();
      download(text);
      say("The file is being saved by your browser.");
    } catch (error) {
      say(error.message);
    }
  };
  const load = make("button", { type: "button", onclick: async () => {
    const [chosen] = file.files;
    if (!chosen) { say("Choose a file first."); return; }
    try {
      const { added } = await backend.imported(await chosen.text());
      const kinds = ["reviews", "answers", "marks"].map((kind) => many(added[kind], kind.slice(0, -1)));
      const ahead = added.ahead ? ` ${many(added.ahead, "entry", "entries")} of later than now ${added.ahead === 1 ? "counts" : "count"} from now: if the clock of this computer is behind, set it right and import the file again.` : "";
      const known = added.known ? `; ${many(added.known, "entry was", "entries were")} there already` : "";
      say(`Added ${kinds.join(", ")}${known}.${ahead}`);
    } catch (error) {
      say(error.message);
    }
  } }, "Import");
  const part = make("div", { class: "settings-part" },
    make("h2", {}, "Take it elsewhere"),
    make("p", {}, "One file holds everything: reviews, answers, marks and settings. It can be read by the local server and by a static site alike."),
    make("p", {}, make("button", { type: "button", onclick: save }, "Export all progress")),
    make("p", {}, make("label", { for: "import-file" }, "A file to import"), " ", file, " ", load),
    make("p", { class: "settings-help" }, "An import adds what is missing and replaces nothing but the settings. A broken file changes nothing."),
    told);
  return { part, save, clear: () => say("") };
}

function download(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = make("a", { href: address, download: `headwise-progress-${new Date().toISOString().slice(0, 10)}.json` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
