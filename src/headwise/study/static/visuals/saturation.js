// Variance of q . k, and what it does to softmax and its gradient, with the scale and without it.

import { drawing, label, rectangle, round, stage, svg } from "./common.js";
import { cursor, dot, line, plot } from "./plot.js";
import { count, fixed } from "./words.js";

export function compute(data, inputs) {
  const scores = data.rows[inputs.exponent][inputs.row - 1];
  const width = 2 ** inputs.exponent;
  return { d_k: width, plain: row(scores), scaled: row(scores.map((score) => score / Math.sqrt(width))) };
}

function row(scores) {
  const highest = Math.max(...scores);
  const raised = scores.map((score) => Math.exp(score - highest));
  const total = raised.reduce((sum, one) => sum + one, 0);
  const weights = raised.map((one) => one / total);
  // the root of the sum of squares of d P_i / d s_j = P_i ([i = j] - P_j)
  const squares = weights.reduce((sum, one) => sum + one ** 2, 0);
  const cubes = weights.reduce((sum, one) => sum + one ** 3, 0);
  return { weights, largest: Math.max(...weights), gradient: Math.sqrt(Math.max(0, squares - 2 * cubes + squares ** 2)) };
}

const WAYS = [["plain", "not scaled", "v-b"], ["scaled", "÷ √d_k", "v-a"]];

function bars(result, stage, width) {
  const each = (width - 24) / 2, tall = 120, top = each > 240 ? 62 : 78;
  const parts = WAYS.flatMap(([way, name, style], place) => {
    const { weights, largest, gradient } = result[way];
    const left = place * (each + 24), wide = each / weights.length;
    return [
      label(left, 15, name, { class: `v-text v-strong ${style}-text` }),
      ...(each > 240
        ? [label(left, 33, `largest weight ${fixed(largest, 2)}, gradient ${fixed(gradient, 3)}`, { class: "v-text v-soft" })]
        : [label(left, 33, `largest weight ${fixed(largest, 2)}`, { class: "v-text v-soft" }), label(left, 49, `gradient ${fixed(gradient, 3)}`, { class: "v-text v-soft" })]),
      svg("line", { x1: round(left), x2: round(left + each), y1: top, y2: top, class: "v-rule" }),
      label(left + each, top - 6, "weight 1", { class: "v-text v-soft v-end" }),
      ...weights.map((weight, key) => rectangle(left + key * wide + 2, top + tall * (1 - weight), wide - 4, tall * weight, { class: `v-bar ${style}` })),
      svg("line", { x1: round(left), x2: round(left + each), y1: top + tall, y2: top + tall, class: "v-axis" }),
      ...weights.map((_, key) => label(left + (key + 0.5) * wide, top + tall + 17, String(key + 1), { class: "v-text v-soft v-center" })),
    ];
  });
  const title = `Weights of ${result.plain.weights.length} keys: not scaled, the largest is ${fixed(result.plain.largest, 2)}; scaled, ${fixed(result.scaled.largest, 2)}.`;
  return drawing(width, top + tall + 26, { role: "img", "aria-label": title, class: "v-plot" }, ...parts);
}

const PANELS = [
  { title: "variance of q · k", log: true, min: 0.5, max: 2048, value: (one, way) => (way === "plain" ? one.variance : one.variance / one.d_k) },
  { title: "largest weight", min: 0, max: 1, value: (one, way) => one[way].largest },
  { title: "gradient of softmax", min: 0, max: 0.5, value: (one, way) => one[way].gradient },
];

function panel({ title, log, min, max, value }, width, averages, d_k) {
  const frame = plot({
    width, height: 210, left: 46, right: 12,
    title: `${title} against d_k, with and without the scale`,
    x: { min: 1, max: 1024, log: true, label: "d_k", ticks: [1, 8, 64, 512] },
    y: { min, max, log, label: title, format: (tick) => (log ? String(tick) : fixed(tick, 1)) },
  });
  frame.add(cursor(frame, d_k));
  for (const [way, name, style] of WAYS) {
    frame.add(line(frame, averages.map((one) => [one.d_k, value(one, way)]), style));
    const here = averages.find((one) => one.d_k === d_k);
    frame.add(dot(frame, d_k, value(here, way), style));
    const beside = averages.find((one) => one.d_k === 32);
    const upper = value(beside, way) >= Math.max(...WAYS.map(([each]) => value(beside, each)));
    const y = frame.y(value(beside, way));
    frame.add(label(frame.x(32), upper || y + 20 > frame.inner.bottom ? y - 9 : y + 17, name, { class: `v-text v-end v-halo-text ${style}-text` }));
  }
  return frame.sheet;
}

function view(result, inputs, stage) {
  const { averages, keys, queries } = stage.data;
  const now = averages.find((one) => one.d_k === result.d_k);
  const across = stage.width >= 700 ? 3 : 1;
  const wide = Math.floor((stage.width - (across - 1) * 16) / across) - 1;
  return {
    draw: [bars(result, stage, stage.width), ...PANELS.map((one) => panel(one, wide, averages, result.d_k))],
    outputs: { exponent: count(result.d_k) },
    table: {
      caption: `Averages over ${queries} random queries with ${keys} keys each`,
      columns: ["d_k", "variance of q · k", "after ÷ √d_k", "largest weight, not scaled", "scaled", "gradient, not scaled", "scaled"],
      rows: averages.map((one) => [String(one.d_k), fixed(one.variance, 1), fixed(one.variance / one.d_k, 2), fixed(one.plain.largest, 3),
        fixed(one.scaled.largest, 3), fixed(one.plain.gradient, 3), fixed(one.scaled.gradient, 3)]),
    },
    words: `With d_k = ${now.d_k}, q · k has variance ${fixed(now.variance, 1)}. Not scaled, the largest of ${keys} weights is `
      + `${fixed(now.plain.largest, 2)} on average, and the gradient is ${fixed(now.plain.gradient, 3)}; divided by √d_k, `
      + `${fixed(now.scaled.largest, 2)} and ${fixed(now.scaled.gradient, 3)}.`,
  };
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}
