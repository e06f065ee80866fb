// Table 2: training cost against BLEU, and what a budget buys.

import { label, round, stage, svg } from "./common.js";
import { asPower, chooser, plot } from "./plot.js";
import { fixed, power } from "./words.js";

const DAY = 24 * 3600;

export function compute(data, inputs) {
  const { language } = inputs, budget = 10 ** inputs.budget;
  const points = data.rows
    .filter((row) => inputs.ensembles || !row.ensemble)
    .map((row) => ({ name: row.name, bleu: row.bleu[language], cost: row.cost[language] }))
    .filter((row) => row.bleu !== null && row.cost !== null);
  const within = points.filter((row) => row.cost <= budget);
  const best = within.reduce((found, row) => (found === null || row.bleu > found.bleu ? row : found), null);
  return { budget, days: budget / data.speed / DAY, points, within: within.map((row) => row.name), best: best && best.name };
}

function view(result, inputs, stage) {
  const { data } = stage;
  const { language } = inputs;
  const rows = new Map(data.rows.map((row) => [row.name, row]));
  const all = data.rows.filter((row) => row.bleu[language] !== null && row.cost[language] !== null);
  const bleus = all.map((row) => row.bleu[language]);
  const narrow = stage.width < 560;
  const frame = plot({
    width: stage.width, height: narrow ? 340 : 400, left: 40, right: narrow ? 14 : 24,
    title: `BLEU against training cost, ${data.languages[language]}`,
    x: { min: 10 ** 18, max: 10 ** 21.6, log: true, label: narrow ? "training cost, FLOPs" : "training cost, FLOPs (logarithmic)", format: asPower },
    y: { min: Math.floor(Math.min(...bleus)) - 0.5, max: Math.ceil(Math.max(...bleus)) + 0.5, label: "BLEU, newstest2014" },
    attributes: { role: "group" },
  });
  const edge = Math.min(frame.inner.right, frame.x(result.budget));
  frame.add(
    svg("rect", { x: frame.inner.left, y: frame.inner.top, width: round(Math.max(0, edge - frame.inner.left)), height: frame.inner.bottom - frame.inner.top, class: "v-within", "aria-hidden": "true" }),
    svg("line", { x1: round(edge), x2: round(edge), y1: frame.inner.top, y2: frame.inner.bottom, class: "v-cursor", "aria-hidden": "true" }),
  );
  const say = ({ name, bleu, cost }) => `${name}: BLEU ${fixed(bleu, 2)} for ${power(cost)} FLOPs`
    + (result.within.includes(name) ? ", within the budget" : ", beyond the budget");
  const points = result.points.map((point) => ({
    key: point.name, x: frame.x(point.cost), y: frame.y(point.bleu), say: say(point),
    style: rows.get(point.name).ours ? "v-b" : "v-a", square: rows.get(point.name).ensemble,
  }));
  frame.add(names(points, frame, result.best), chooser(stage, {
    id: "models", name: "Models, from the cheapest on", points, chosen: stage.own.model ?? result.best,
    pick: (name) => stage.set("model", name),
  }));
  const missing = data.rows.filter((row) => !all.includes(row) && row.bleu[language] !== null).map((row) => row.name);
  const chosen = result.best && rows.get(result.best);
  return {
    draw: [frame.sheet, note(missing)],
    outputs: { budget: `${power(result.budget)} FLOPs` },
    table: {
      caption: `${data.languages[language]}, newstest2014`,
      columns: ["model", "BLEU", "training cost, FLOPs"],
      rows: data.rows.map((row) => [row.name, row.bleu[language] === null ? "" : fixed(row.bleu[language], 2), row.cost[language] === null ? "" : power(row.cost[language], 1)]),
    },
    words: `${power(result.budget)} FLOPs are ${fixed(result.days, 1)} days of the paper’s machine by its own estimate. `
      + (chosen ? `The best model trained with no more is ${result.best}: BLEU ${fixed(chosen.bleu[language], 2)}.` : "No model of the table was trained with so little."),
  };
}

// A name beside each point, where it meets no other.
function names(points, frame, best) {
  const taken = points.map(({ x, y }) => [x - 8, y - 8, x + 8, y + 8]);
  const parts = [...points].sort((a, b) => Number(b.key === best) - Number(a.key === best) || a.y - b.y).flatMap((point) => {
    const long = point.key.length * 7.4;
    const off = point.key === best ? 16 : 11;
    const places = [[point.x + off, point.y + 4], [point.x - off - long, point.y + 4], [point.x - long / 2, point.y - 12], [point.x - long / 2, point.y + 22],
      [point.x + 9, point.y - 9], [point.x + 9, point.y + 17], [point.x - 9 - long, point.y - 9], [point.x - 9 - long, point.y + 17]];
    const fits = places.find(([x, y]) => x >= frame.inner.left - 2 && x + long <= frame.inner.right + 12 && y > frame.inner.top - 6 && y < frame.inner.bottom
      && taken.every(([left, top, right, bottom]) => x > right || x + long < left || y - 11 > bottom || y + 3 < top));
    if (!fits) return [];
    taken.push([fits[0], fits[1] - 11, fits[0] + long, fits[1] + 3]);
    return [label(fits[0], fits[1], point.key, { class: `v-text v-halo-text${point.key === best ? " v-strong" : ""}${point.style === "v-b" ? " v-b-text" : ""}` })];
  });
  return svg("g", { "aria-hidden": "true" }, ...parts);
}

function note(missing) {
  const line = document.createElement("p");
  line.className = "v-note";
  line.textContent = `Squares are ensembles. The paper gives one cost for each Transformer, for both pairs of languages.`
    + (missing.length ? ` Not drawn, since the table gives no cost: ${missing.join(", ")}.` : "");
  return line;
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}
