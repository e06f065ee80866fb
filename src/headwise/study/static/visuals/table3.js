// Table 3: every variation of the paper's model, to sort, to filter and to put on two axes.

import { drawing, html, label, rectangle, stage, svg } from "./common.js";
import { chooser, plot } from "./plot.js";
import { count, fixed } from "./words.js";

const MILLION = 1e6;
const BEST_FIRST = ["bleu", "counted", "printed"];

export function compute(data, inputs) {
  const byName = new Map(data.rows.map((row) => [row.name, row]));
  let rows = data.rows
    .filter((row) => inputs.group === "all" || row.group === "base" || row.group === inputs.group)
    .map((row) => {
      const counted = row.rest + inputs.vocabulary * row.d_model;
      return { name: row.name, counted, matches: row.printed === null ? null : Math.floor((counted + MILLION / 2) / MILLION) === row.printed };
    });
  if (inputs.sort !== "paper") {
    const value = (row) => ({ ...byName.get(row.name), ...row })[inputs.sort];
    const sign = BEST_FIRST.includes(inputs.sort) ? -1 : 1;
    const known = rows.filter((row) => value(row) !== null).sort((a, b) => sign * (value(a) - value(b)));
    rows = [...known, ...rows.filter((row) => value(row) === null)];
  }
  const stated = rows.filter((row) => row.matches !== null);
  const chosen = byName.get(inputs.row);
  return {
    rows,
    matching: stated.filter((row) => row.matches).length,
    stated: stated.length,
    parts: chosen.parts.map((part) => ({ name: part.name, parameters: part.name === "embeddings" ? inputs.vocabulary * chosen.d_model : part.parameters })),
  };
}

const millions = (value) => fixed(value / MILLION, 2);
const inUnits = (field, value) => (field === "counted" ? millions(value) : field === "perplexity" ? fixed(value, 2) : field === "bleu" ? fixed(value, 1) : field === "dropout" || field === "smoothing" ? fixed(value, 1) : count(value));

function scatter(result, inputs, stage) {
  const { fields, rows } = stage.data;
  const byName = new Map(rows.map((row) => [row.name, row]));
  const shown = result.rows.map((row) => ({ ...byName.get(row.name), ...row })).filter((row) => row[inputs.x] !== null && row[inputs.y] !== null);
  const axis = (field) => {
    const values = rows.map((row) => (field === "counted" ? row.rest + inputs.vocabulary * row.d_model : row[field])).filter((one) => one !== null);
    const low = Math.min(...values), high = Math.max(...values), room = (high - low) * 0.06 || 1;
    const unit = field === "counted" ? MILLION : 1;
    return { min: (low - room) / unit, max: (high + room) / unit, label: `${fields[field]}${["counted", "printed"].includes(field) ? ", million" : ""}`, unit };
  };
  const x = axis(inputs.x), y = axis(inputs.y);
  const frame = plot({
    width: stage.width, height: stage.width < 560 ? 320 : 380, left: 44, right: 20,
    title: `${fields[inputs.y]} against ${fields[inputs.x]}`, x, y, attributes: { role: "group" },
  });
  const points = shown.map((row) => ({
    key: row.name, x: frame.x(row[inputs.x] / x.unit), y: frame.y(row[inputs.y] / y.unit),
    say: `${row.name} (${row.change}): ${fields[inputs.x]} ${inUnits(inputs.x, row[inputs.x])}, ${fields[inputs.y]} ${inUnits(inputs.y, row[inputs.y])}`,
    style: row.name === inputs.row ? "v-b" : "v-a", square: row.group === "base" || row.group === "big",
  }));
  frame.add(names(points, frame, inputs.row), chooser(stage, {
    id: "rows", name: "Rows of table 3, from left to right", points, chosen: inputs.row, pick: (name) => stage.set("row", name), radius: 5,
  }));
  return frame.sheet;
}

// Names where there is room for them; the chosen row's always.
function names(points, frame, chosen) {
  const taken = [];
  const free = (box) => taken.every((one) => box[0] > one[2] || box[2] < one[0] || box[1] > one[3] || box[3] < one[1]);
  points.forEach(({ x, y }) => taken.push([x - 6, y - 6, x + 6, y + 6]));
  const rank = (point) => (point.key === chosen ? 0 : point.square ? 1 : 2);
  const parts = [...points].sort((a, b) => rank(a) - rank(b)).flatMap((point) => {
    const long = point.key.length * 7.4;
    const own = point.key === chosen;
    for (const [x, y] of places(point, long, own ? 15 : 10)) {
      const box = [x, y - 11, x + long, y + 3];
      if (x < frame.inner.left - 4 || x + long > frame.inner.right + 14 || y < frame.inner.top || y > frame.inner.bottom || !free(box)) continue;
      taken.push(box);
      return [label(x, y, point.key, { class: `v-text v-halo-text${own ? " v-strong v-b-text" : ""}` })];
    }
    return own ? [label(Math.min(point.x, frame.inner.right - long), point.y - 11, point.key, { class: "v-text v-strong v-halo-text v-b-text" })] : [];
  });
  return svg("g", { "aria-hidden": "true" }, ...parts);
}

const places = ({ x, y }, long, off) => [[x + off, y + 4], [x - off - long, y + 4], [x - long / 2, y - off - 2], [x - long / 2, y + off + 11]];

// The chosen row's parameters, part by part.
function parts(result, inputs, stage) {
  const total = result.parts.reduce((sum, part) => sum + part.parameters, 0);
  const narrow = stage.width < 480, left = narrow ? 158 : 164, top = narrow ? 44 : 28;
  const whole = stage.width - left - (narrow ? 46 : 70), tall = 15, step = 22;
  const most = Math.max(...result.parts.map((part) => part.parameters));
  const lines = result.parts.flatMap((part, place) => {
    const y = top + place * step, long = Math.max(1, (whole * part.parameters) / most);
    return [
      label(left - 8, y + tall / 2, part.name, { class: "v-text v-end v-middle" }),
      rectangle(left, y, long, tall, { class: "v-bar v-a" }),
      label(left + long + 6, y + tall / 2, millions(part.parameters), { class: "v-text v-middle" }),
    ];
  });
  const row = stage.data.rows.find((one) => one.name === inputs.row);
  const printed = row.printed === null ? "none printed" : `printed ${row.printed}`;
  return drawing(stage.width, top + result.parts.length * step + 4, {
    role: "img", class: "v-plot", "aria-label": `${inputs.row}: ${result.parts.map((part) => `${part.name} ${millions(part.parameters)} million`).join(", ")}.`,
  },
  label(2, 14, narrow ? inputs.row : `${inputs.row}: ${millions(total)} million parameters (${printed})`, { class: "v-text v-strong v-b-text" }),
  narrow ? label(2, 31, `${millions(total)} million parameters (${printed})`) : null, ...lines);
}

function view(result, inputs, stage) {
  const { rows, common, big } = stage.data;
  const byName = new Map(rows.map((row) => [row.name, row]));
  const row = byName.get(inputs.row);
  const about = html("p", { class: "v-note" }, `${inputs.row}: ${row.change}. Perplexity ${fixed(row.perplexity, 2)}, BLEU ${fixed(row.bleu, 1)} on newstest2013. `
    + `Every printed count but that of “big” is met with ${count(common[0])} to ${count(common[1])} tokens; “big” with ${count(big[0])} to ${count(big[1])}.`);
  return {
    draw: [scatter(result, inputs, stage), parts(result, inputs, stage), about],
    outputs: { vocabulary: count(inputs.vocabulary) },
    table: {
      caption: `Table 3, with parameters for a vocabulary of ${count(inputs.vocabulary)} tokens`,
      columns: ["row", "perplexity", "BLEU", "printed, million", "counted, million"],
      rows: result.rows.map(({ name, counted }) => {
        const { perplexity, bleu, printed } = byName.get(name);
        return [name, fixed(perplexity, 2), fixed(bleu, 1), printed === null ? "" : String(printed), millions(counted)];
      }),
    },
    words: `With ${count(inputs.vocabulary)} tokens, ${result.matching} of ${result.stated} printed parameter counts are met to the million.`,
  };
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}
