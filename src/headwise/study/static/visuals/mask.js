// Masks: which query sees which key.

import { drawing, label, stage, svg } from "./common.js";
import { columnLabels, heat, rowLabels } from "./heat.js";
import { count, fixed, percent } from "./words.js";

export function compute(data, inputs) {
  const queries = Number(inputs.queries), keys = Number(inputs.keys);
  const from = inputs.align === "end" ? keys - queries : 0;
  const length = Math.min(inputs.length, keys);
  const positions = Array.from({ length: queries }, (_, query) => query + from);
  const seen = positions.map((position) => Array.from({ length: keys }, (_, key) =>
    (!inputs.causal || key <= position || key < inputs.prefix)
    && (!inputs.window || (key - position >= -inputs.before && key - position <= inputs.after))
    && (!inputs.lengths || key < length)));
  const counts = seen.map((row) => row.filter(Boolean).length);
  return {
    expression: expression(inputs, length),
    positions,
    seen,
    count: counts.reduce((sum, one) => sum + one, 0),
    weights: counts.map((one) => (one ? 1 / one : 0)),
  };
}

// As one writes it with headwise.
function expression(inputs, length) {
  const parts = [];
  if (inputs.causal) parts.push(inputs.prefix ? `Causal() | Prefix(lengths=${inputs.prefix})` : "Causal()");
  if (inputs.window) parts.push(`Window(before=${inputs.before}, after=${inputs.after})`);
  if (inputs.lengths) parts.push(`KeyLengths(lengths=${length})`);
  if (!parts.length) return "None";
  return parts.map((part) => (parts.length > 1 && part.includes("|") ? `(${part})` : part)).join(" & ");
}

function spans(row) {
  const parts = [];
  let start = null;
  [...row, false].forEach((seen, place) => {
    if (seen && start === null) start = place;
    else if (!seen && start !== null) {
      parts.push(place - start === 1 ? String(start) : `${start} to ${place - 1}`);
      start = null;
    }
  });
  return parts.join(", ") || "none";
}

function view(result, inputs, stage) {
  const { words } = stage.data;
  const { positions, seen, weights } = result;
  const queries = positions.length, keys = seen[0].length;
  const named = (place) => (place >= 0 ? `${words[place]} (${place})` : `(${fixed(place, 0)})`);
  const roomy = stage.width >= 520;
  const left = roomy ? 92 : 46, right = roomy ? 120 : 8, top = roomy ? 74 : 44;
  const cell = Math.min(34, (stage.width - left - right) / keys);
  const rowNames = positions.map((place) => (roomy ? named(place) : fixed(place, 0)));
  const columnNames = Array.from({ length: keys }, (_, key) => (roomy ? words[key] : String(key)));
  const grid = heat(stage, {
    id: "mask", name: "Who may attend: rows are queries, columns are keys, by positions counted from 0", rows: queries, columns: keys,
    x: left, y: top, wide: cell, tall: cell,
    shade: (query, key) => (seen[query][key] ? Math.max(0.3, Math.sqrt(weights[query])) : null),
    say: (query, key) => `query ${named(positions[query])}, key ${named(key)}: `
      + (seen[query][key] ? `may attend, weight ${fixed(weights[query], 3)} if all scores are alike` : "may not attend"),
    mark: (query, key, [x, y]) => (seen[query][key] ? null
      : svg("circle", { cx: x + cell / 2, cy: y + cell / 2, r: Math.min(2, cell / 8), class: "v-hidden" })),
  });
  const counts = roomy ? positions.map((_, query) => {
    const number = seen[query].filter(Boolean).length;
    return label(left + keys * cell + 10, top + (query + 0.5) * cell, number ? `${number} × ${fixed(weights[query], 3)}` : "nothing: output 0", { class: "v-text v-soft v-middle" });
  }) : [];
  const axes = svg("g", { "aria-hidden": "true" },
    label(roomy ? left : left + 28, 14, "keys, from 0 →", { class: "v-text v-soft" }),
    label(2, roomy ? top - 8 : 14, "queries ↓", { class: "v-text v-soft" }),
    rowLabels(rowNames, { x: left - 8, y: top, tall: cell }),
    columnLabels(columnNames, { x: left, y: top - 8, wide: cell, turned: roomy }),
    ...(cell >= 14 ? counts : []),
  );
  const idle = [
    ...(inputs.causal ? [] : ["prefix"]), ...(inputs.window ? [] : ["before", "after"]),
    ...(inputs.lengths ? [] : ["length"]), ...(queries === keys ? ["align"] : []),
  ];
  const pairs = queries * keys, empty = weights.filter((weight) => weight === 0).length;
  return {
    draw: [drawing(stage.width, top + queries * cell + 8, { class: "v-plot" }, axes, grid), code(result.expression)],
    idle,
    table: {
      caption: `mask = ${result.expression}`,
      columns: ["query", "keys seen", "weight of each, all scores alike", "which"],
      rows: positions.map((place, query) => [named(place), count(seen[query].filter(Boolean).length), fixed(weights[query], 3), spans(seen[query])]),
    },
    words: `${count(result.count)} of ${count(pairs)} pairs may attend (${percent(result.count / pairs)}).`
      + (empty ? ` ${empty === 1 ? "One query sees" : `${empty} queries see`} nothing: the output there is 0.` : ""),
  };
}

function code(expression) {
  const line = document.createElement("p");
  line.className = "v-code";
  const text = document.createElement("code");
  text.textContent = `mask = ${expression}`;
  line.append(text);
  return line;
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}
