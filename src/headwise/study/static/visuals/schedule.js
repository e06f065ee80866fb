// The paper's learning rate: a straight rise, then a fall with the inverse square root of the step.

import { label, stage } from "./common.js";
import { apart, asPower, cursor, dot, line, plot } from "./plot.js";
import { count, power } from "./words.js";

const rateOf = (width, warmup, step) => Math.min(1 / Math.sqrt(step), step / Math.sqrt(warmup) ** 3) / Math.sqrt(width);

export function compute(data, inputs) {
  const step = Math.floor(10 ** (inputs.reach / 20) + 0.5);
  const rate = (one) => rateOf(inputs.width, inputs.warmup, one);
  return { step, rate: rate(step), peak: rate(inputs.warmup), curve: data.steps.map(rate), rising: step < inputs.warmup };
}

// The samples and the peak itself, which lies between two of them.
function points(data, { width, warmup }) {
  const steps = [...data.steps.filter((step) => step !== warmup), warmup].sort((a, b) => a - b);
  return steps.map((step) => [step, rateOf(width, warmup, step)]);
}

function view(result, inputs, stage) {
  const { data } = stage;
  const models = [["base", "the paper’s base"], ["big", "the paper’s big"]].map(([name, text]) => ({ ...data[name], text }));
  const yours = { width: inputs.width, warmup: inputs.warmup };
  const highest = Math.max(...[yours, ...models].map(({ width, warmup }) => rateOf(width, warmup, warmup)));
  const log = inputs.log, narrow = stage.width < 560;
  const frame = plot({
    width: stage.width, height: Math.min(380, Math.max(260, stage.width * 0.5)), left: 52, right: narrow ? 20 : 130,
    title: `Learning rate against step: it peaks at ${power(result.peak, 2)} at step ${count(inputs.warmup)}`,
    x: { min: log ? 1 : 0, max: data.last, log, label: "step", format: log ? asPower : (tick) => (tick >= 1000 ? `${tick / 1000}k` : String(tick)) },
    y: log ? { min: highest / 1e5, max: highest * 1.6, log, label: "learning rate", format: asPower }
      : { min: 0, max: highest * 1.08, label: "learning rate, × 10⁻³", format: (tick) => String(Number((tick * 1000).toPrecision(6))) },
  });
  const same = (one) => one.width === yours.width && one.warmup === yours.warmup;
  const others = models.filter((one) => !same(one));
  for (const one of others) frame.add(line(frame, points(data, one), "v-quiet"));
  frame.add(cursor(frame, result.step), line(frame, points(data, yours), "v-a"));
  frame.add(dot(frame, inputs.warmup, result.peak, "v-a", 4), dot(frame, result.step, result.rate, "v-b", 5));
  const named = [{ ...yours, text: models.find(same)?.text || "yours", style: "v-a-text v-strong" }, ...others.map((one) => ({ ...one, style: "v-soft" }))];
  const rateAt = (one, step) => rateOf(one.width, one.warmup, step);
  if (narrow) { // the highest line is named above it, the others below
    const order = [...named].sort((one, another) => rateAt(another, data.last) - rateAt(one, data.last));
    order.forEach((one, place) => frame.add(label(frame.inner.right, place ? frame.y(rateAt(order[place], data.last)) + 1 + 14 * place : frame.y(rateAt(one, log ? data.last / 20 : data.last / 2)) - 9, one.text, { class: `v-text v-end v-halo-text ${one.style}` })));
  } else {
    const heights = apart(named.map((one) => frame.y(rateAt(one, data.last))), 15, frame.inner.top, frame.inner.bottom - 8);
    named.forEach((one, place) => frame.add(label(frame.inner.right + 7, heights[place], one.text, { class: `v-text v-middle ${one.style}` })));
  }
  const right = frame.x(inputs.warmup) > frame.inner.right - 150;
  frame.add(label(frame.x(inputs.warmup) + (right ? -8 : 8), Math.max(frame.inner.top + 4, frame.y(result.peak) - 6), `peak ${power(result.peak, 2)} at step ${count(inputs.warmup)}`, { class: `v-text v-strong v-halo-text${right ? " v-end" : ""}` }));
  const marks = [...new Set([1, 100, 1000, inputs.warmup, 10000, 30000, data.last])].sort((a, b) => a - b);
  return {
    draw: [frame.sheet],
    outputs: { reach: count(result.step), warmup: count(inputs.warmup) },
    table: {
      caption: `Learning rate for d_model ${count(inputs.width)} and ${count(inputs.warmup)} warm-up steps`,
      columns: ["step", "learning rate"],
      rows: marks.map((step) => [count(step), power(rateOf(inputs.width, inputs.warmup, step), 3)]),
    },
    words: `The rate rises for ${count(inputs.warmup)} steps to ${power(result.peak, 2)}. At step ${count(result.step)} it is ${power(result.rate, 2)}.`,
  };
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}
