// Label smoothing: the targets, the loss against them, and the floor under it.

import { drawing, label, rectangle, stage, svg } from "./common.js";
import { cursor, dot, line, plot } from "./plot.js";
import { count, fixed, power } from "./words.js";

const cross = (right, other, classes, sure) =>
  -right * Math.log(sure) - (other === 0 ? 0 : (classes - 1) * other * Math.log((1 - sure) / (classes - 1)));

export function compute(data, inputs) {
  const { smoothing, confidence: sure } = inputs, classes = Number(inputs.vocabulary);
  const other = smoothing / classes, right = 1 - smoothing + other;
  const floor = smoothing === 0 ? 0 : -right * Math.log(right) - (classes - 1) * other * Math.log(other);
  return {
    right, other, floor, floor_perplexity: Math.exp(floor),
    loss: cross(right, other, classes, sure),
    hard: -Math.log(sure),
    pull_right: sure - right, pull_others: right - sure,
    others: (1 - sure) / (classes - 1),
    curve: data.confidences.map((one) => cross(right, other, classes, one)),
  };
}

// What is asked for and what the model says, as two bars of length 1.
function shares(result, inputs, width) {
  const left = 104, whole = width - left - 12, tall = 24, top = 34;
  const lines = [["target", result.right, "v-a"], ["the model", inputs.confidence, "v-b"]];
  const parts = lines.flatMap(([name, right, style], place) => {
    const y = top + place * (tall + 14);
    return [
      label(left - 8, y + tall / 2, name, { class: `v-text v-end v-middle v-strong ${style}-text` }),
      rectangle(left, y, whole * right, tall, { class: `v-bar ${style}` }),
      rectangle(left + whole * right, y, whole * (1 - right), tall, { class: `v-bar ${style} v-pale` }),
      label(left + 8, y + tall / 2, fixed(right, 3), { class: "v-text v-inside v-middle" }),
    ];
  });
  const others = count(Number(inputs.vocabulary) - 1);
  return drawing(width, top + 2 * tall + 46, {
    role: "img", class: "v-plot",
    "aria-label": `The target gives the right token ${fixed(result.right, 3)}, the model ${fixed(inputs.confidence, 3)}; the rest is shared by ${others} others.`,
  },
  label(left, 18, "the right token", { class: "v-text v-soft" }),
  label(width - 12, top + 2 * tall + 34, others === "1" ? "the other token" : `shared by ${others} others`, { class: "v-text v-soft v-end" }), ...parts);
}

function view(result, inputs, stage) {
  const { confidences } = stage.data;
  const vocabulary = Number(inputs.vocabulary);
  const top = Math.max(3, Math.ceil(result.floor + 1.2));
  const frame = plot({
    width: stage.width, height: Math.min(360, Math.max(260, stage.width * 0.48)), left: 40, right: 18,
    title: `Loss against the model's probability of the right token: lowest, ${fixed(result.floor, 3)} nats, at ${fixed(result.right, 3)}`,
    x: { min: 0, max: 1, label: "the model’s probability of the right token", format: (tick) => fixed(tick, 1) },
    y: { min: 0, max: top, label: "loss, nats" },
  });
  const within = (values) => confidences.map((one, place) => [one, values[place] <= top ? values[place] : null]);
  const floorAt = frame.y(result.floor);
  frame.add(
    svg("line", { x1: frame.inner.left, x2: frame.inner.right, y1: floorAt, y2: floorAt, class: "v-floor" }),
    cursor(frame, inputs.confidence),
    line(frame, within(confidences.map((one) => -Math.log(one))), "v-quiet"),
    line(frame, within(result.curve), "v-a"),
    dot(frame, result.right === 1 ? 1 : result.right, result.floor, "v-a", 4.5),
  );
  if (result.loss <= top) frame.add(dot(frame, inputs.confidence, result.loss, "v-b", 5.5));
  const middle = 0.42;
  const smoothed = cross(result.right, result.other, vocabulary, middle);
  frame.add(label(frame.x(0.5) - 4, frame.y(-Math.log(0.5)) + 15, "without smoothing", { class: "v-text v-soft v-end v-halo-text" }));
  if (inputs.smoothing > 0) {
    frame.add(
      label(frame.x(middle), Math.max(frame.inner.top + 10, frame.y(Math.min(smoothed, top)) - 10), "with smoothing", { class: "v-text v-strong v-a-text v-halo-text" }),
      label(frame.inner.left + 6, floorAt + (result.floor > 0.25 ? 16 : -7), `floor ${fixed(result.floor, 3)}`, { class: "v-text v-halo-text" }),
    );
  }
  return {
    draw: [shares(result, inputs, stage.width), frame.sheet],
    outputs: { smoothing: fixed(inputs.smoothing, 2), confidence: fixed(inputs.confidence, 3) },
    table: {
      caption: `Smoothing ${fixed(inputs.smoothing, 2)}, ${count(vocabulary)} tokens`,
      columns: ["probability", "right token", "each other token"],
      rows: [
        ["target", fixed(result.right, 4), power(result.other, 2)],
        ["the model", fixed(inputs.confidence, 4), power(result.others, 2)],
      ],
    },
    words: `A perfect model gives the right token ${fixed(result.right, 3)} and still has a loss of ${fixed(result.floor, 3)} nats `
      + `(perplexity ${fixed(result.floor_perplexity, 2)}). At ${fixed(inputs.confidence, 3)} the loss is ${fixed(result.loss, 3)}: `
      + `${fixed(result.loss - result.floor, 3)} more.`,
  };
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}
