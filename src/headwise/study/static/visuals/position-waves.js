// Sinusoidal positions: hands that turn at different speeds, and the turn that a shift makes.

import { drawing, label, pieces, round, stage, svg } from "./common.js";
import { heat, rowLabels } from "./heat.js";
import { cursor, dot, line, plot } from "./plot.js";
import { fixed } from "./words.js";

const TURN = 2 * Math.PI;
const MOST = 32; // columns of the picture

export function compute(data, inputs) {
  const width = Number(inputs.width), { position, shift } = inputs;
  const pair = Math.min(inputs.pair, width / 2 - 1);
  const speeds = Array.from({ length: width / 2 }, (_, one) => data.base ** ((-2 * one) / width));
  const speed = speeds[pair], angle = shift * speed;
  const at = (place) => [Math.sin(place * speed), Math.cos(place * speed)];
  const rotation = [[Math.cos(angle), Math.sin(angle)], [-Math.sin(angle), Math.cos(angle)]];
  const here = at(position);
  return {
    pair, speed, wavelength: TURN / speed, angle, rotation, here, there: at(position + shift),
    turned: rotation.map(([left, right]) => left * here[0] + right * here[1]),
    speeds,
    row: speeds.flatMap((one) => [Math.sin(position * one), Math.cos(position * one)]),
  };
}

const degrees = (angle) => (angle * 360) / TURN;

// The hands of some pairs: solid at the position, open after the shift, the turn between them as an arc.
function clocks(result, inputs, stage) {
  const many = stage.width >= 720 ? 8 : stage.width >= 480 ? 6 : 4;
  const last = result.speeds.length - 1;
  const shown = [...new Set(Array.from({ length: Math.min(many, last + 1) }, (_, one) => Math.round((one * last) / Math.max(1, Math.min(many, last + 1) - 1))))];
  if (!shown.includes(result.pair)) {
    const near = shown.reduce((best, one, place) => (Math.abs(one - result.pair) < Math.abs(shown[best] - result.pair) ? place : best), 0);
    shown[near] = result.pair;
  }
  const wide = stage.width / shown.length, radius = Math.min(40, wide / 2 - 8), middle = 66;
  const parts = shown.map((pair, place) => {
    const x = (place + 0.5) * wide, speed = result.speeds[pair];
    const tip = (angle, length) => [round(x + length * Math.sin(angle)), round(middle - length * Math.cos(angle))];
    const from = inputs.position * speed, by = inputs.shift * speed;
    const chosen = pair === result.pair;
    return svg("g", {},
      svg("circle", { cx: round(x), cy: middle, r: radius, class: chosen ? "v-clock v-chosen" : "v-clock" }),
      svg("path", { d: arc(x, middle, radius * 0.5, from, by), class: "v-arc" }),
      hand(x, middle, tip(from, radius - 4), "v-a"),
      hand(x, middle, tip(from + by, radius - 4), "v-b"),
      label(x, middle + radius + 18, `pair ${pair}`, { class: `v-text v-center${chosen ? " v-strong" : ""}` }),
      label(x, middle + radius + 34, by >= TURN ? `${fixed(by / TURN, 1)} turns` : `${fixed(degrees(by), degrees(by) < 10 ? 2 : 0)}°`, { class: "v-text v-soft v-center" }),
    );
  });
  const title = `Hands of ${shown.length} pairs; pair ${result.pair} turns by ${fixed(degrees(result.angle), 1)} degrees.`;
  return drawing(stage.width, middle + radius + 42, { role: "img", "aria-label": title, class: "v-plot" },
    pieces(2, 14, [["solid: ", "v-soft"], [`position ${inputs.position}`, "v-a-text v-strong"], ["; dashed: ", "v-soft"], [`position ${inputs.position + inputs.shift}`, "v-b-text v-strong"]]), ...parts);
}

const hand = (x, y, [left, top], style) => svg("line", { x1: round(x), y1: y, x2: left, y2: top, class: `v-hand ${style}` });

function arc(x, y, radius, from, by) {
  const turn = Math.min(by, TURN * 0.9999);
  const at = (angle) => `${round(x + radius * Math.sin(angle))} ${round(y - radius * Math.cos(angle))}`;
  return `M${at(from)}A${round(radius)} ${round(radius)} 0 ${turn > Math.PI ? 1 : 0} 1 ${at(from + turn)}`;
}

function waves(result, inputs, stage) {
  const last = stage.data.positions;
  const frame = plot({
    width: stage.width, height: 190, left: 34, right: 40, top: 26,
    title: `Sine and cosine of pair ${result.pair}: one turn takes ${fixed(result.wavelength, 1)} positions`,
    x: { min: 0, max: last, label: "position" },
    y: { min: -1.05, max: 1.05, label: `pair ${result.pair}: one turn in ${fixed(result.wavelength, 1)} positions`, ticks: [-1, 0, 1], format: (tick) => fixed(tick, 0) },
  });
  const samples = Array.from({ length: 401 }, (_, place) => (place * last) / 400);
  frame.add(
    cursor(frame, inputs.position),
    line(frame, samples.map((at) => [at, Math.sin(at * result.speed)]), "v-a"),
    line(frame, samples.map((at) => [at, Math.cos(at * result.speed)]), "v-c"),
  );
  const ends = [Math.sin(last * result.speed), Math.cos(last * result.speed)];
  const close = Math.abs(frame.y(ends[0]) - frame.y(ends[1])) < 14;
  const lift = close ? (ends[0] > ends[1] ? -7 : 7) : 0;
  frame.add(
    label(frame.inner.right + 5, frame.y(ends[0]) + lift, "sin", { class: "v-text v-middle v-a-text" }),
    label(frame.inner.right + 5, frame.y(ends[1]) - lift, "cos", { class: "v-text v-middle v-c-text" }),
  );
  for (const [at, [sine, cosine], style] of [[inputs.position, result.here, "v-solid"], [inputs.position + inputs.shift, result.there, "v-open"]]) {
    if (at <= last) frame.add(dot(frame, at, sine, `v-a ${style}`), dot(frame, at, cosine, `v-c ${style}`));
  }
  return frame.sheet;
}

// The encoding itself: positions down, columns across; light is -1, dark is 1.
function picture(result, inputs, stage) {
  const columns = Math.min(MOST, 2 * result.speeds.length), rows = stage.data.positions / 2;
  const from = Math.min(Math.max(0, inputs.position - rows / 2), stage.data.positions);
  const left = 34, wide = Math.min(28, (stage.width - left - 4) / columns), tall = 9, top = 40;
  const valueAt = (row, column) => {
    const angle = (from + row) * result.speeds[Math.floor(column / 2)];
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  };
  const part = columns < 2 * result.speeds.length ? `first ${columns} of ${2 * result.speeds.length} columns` : `${columns} columns`;
  const grid = heat(stage, {
    id: "waves", name: `The encoding: rows are positions from ${from}, ${part}`, rows, columns, x: left, y: top, wide, tall,
    shade: (row, column) => (valueAt(row, column) + 1) / 2,
    say: (row, column) => `position ${from + row}, column ${column} (${column % 2 ? "cosine" : "sine"} of pair ${Math.floor(column / 2)}): ${fixed(valueAt(row, column), 3)}`,
    pick: (row, column) => { stage.set("position", from + row); stage.set("pair", Math.floor(column / 2)); },
    first: [0, 0], gap: 0.6,
  });
  const frame = svg("rect", { x: left + 2 * result.pair * wide, y: round(top + (inputs.position - from) * tall), width: round(2 * wide), height: tall, class: "v-picked", "aria-hidden": "true" });
  const axes = svg("g", { "aria-hidden": "true" },
    label(left, 14, `the encoding, ${part} →`, { class: "v-text v-soft" }),
    label(left, 30, stage.width < 480 ? "pale is −1, full is 1" : "sine, cosine of pair 0, of pair 1, …; pale is −1, full is 1", { class: "v-text v-soft" }),
    rowLabels(Array.from({ length: rows }, (_, row) => String(from + row)), { x: left - 6, y: top, tall, size: 11 }));
  return drawing(stage.width, top + rows * tall + 6, { class: "v-plot" }, axes, grid, ...(2 * result.pair < columns ? [frame] : []));
}

function view(result, inputs, stage) {
  const width = 2 * result.speeds.length;
  return {
    draw: [clocks(result, inputs, stage), waves(result, inputs, stage), picture(result, inputs, stage)],
    outputs: { pair: String(result.pair) },
    limits: { pair: result.speeds.length - 1 },
    table: {
      caption: `d_model ${width}: every pair of columns, and what a shift by ${inputs.shift} does to it`,
      columns: ["pair", "columns", "positions per turn", "turned by, in degrees"],
      rows: result.speeds.map((speed, pair) => [String(pair), `${2 * pair}, ${2 * pair + 1}`, fixed(TURN / speed, 1), fixed(degrees(inputs.shift * speed), 2)]),
    },
    words: `Pair ${result.pair} turns once in ${fixed(result.wavelength, 1)} positions. A shift by ${inputs.shift} turns it by `
      + `${fixed(degrees(result.angle), 1)}°, from whichever position.`,
  };
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}
