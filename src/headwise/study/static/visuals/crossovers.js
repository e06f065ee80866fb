// Table 1: the cost of four kinds of layer against the length of the sequence.

import { drawing, label, round, stage, svg } from "./common.js";
import { apart, asPower, cursor, dot, line, plot } from "./plot.js";
import { count, fixed, size } from "./words.js";

const STYLES = ["v-a", "v-b", "v-c", "v-d"];

function cost(layer, what, n, d, k, r) {
  const near = Math.min(r, n);
  if (what === "operations") {
    return { "self-attention": n * n * d, recurrent: n * d * d, convolutional: k * n * d * d, restricted: near * n * d }[layer];
  }
  if (what === "sequential" || layer === "self-attention") return layer === "recurrent" ? n : 1;
  if (layer === "recurrent") return n;
  if (layer === "restricted") return Math.ceil(n / near);
  if (k === 1) return null; // kernels of one position never join two
  let layers = 0;
  for (let reached = 1; reached < n; reached *= k) layers++;
  return Math.max(1, layers);
}

const parameters = (inputs) => [Number(inputs.width), inputs.kernel, inputs.near];

export function compute(data, inputs) {
  const n = Math.floor(10 ** (inputs.reach / 20) + 0.5);
  const rest = parameters(inputs);
  const [d, k] = rest;
  return {
    n,
    here: data.layers.map((layer) => cost(layer, inputs.cost, n, ...rest)),
    lines: data.layers.map((layer) => data.lengths.map((one) => cost(layer, inputs.cost, one, ...rest))),
    crossings: inputs.cost === "operations"
      ? [{ layers: ["self-attention", "recurrent"], n: d }, { layers: ["self-attention", "convolutional"], n: k * d }] : [],
  };
}

const TITLES = { operations: "operations per layer", sequential: "sequential steps", path: "longest path, layers" };
const shown = (value) => (value === null ? "never" : size(value));

function comparison(n, d) {
  const ratio = d / n;
  if (n === d) return `At n = ${count(n)} a self-attention and a recurrent layer cost the same: n = d.`;
  const [cheaper, dearer] = ratio > 1 ? ["self-attention", "a recurrent layer"] : ["a recurrent layer", "self-attention"];
  return `At n = ${count(n)}, ${cheaper} is ${fixed(Math.max(ratio, 1 / ratio), 1)} times cheaper than ${dearer}; the two cost the same at n = d = ${count(d)}.`;
}

function view(result, inputs, stage) {
  const { data } = stage;
  const rest = parameters(inputs);
  const [d, k] = rest;
  const narrow = stage.width < 560;
  const values = result.lines.flat().filter((one) => one !== null);
  const low = Math.min(...values), high = Math.max(...values) * 2;
  const frame = plot({
    width: stage.width, height: Math.min(430, Math.max(300, stage.width * 0.55)), left: 50, right: narrow ? 18 : 178,
    title: `${TITLES[inputs.cost]} against the length n, both on logarithmic axes`,
    x: { min: 1, max: data.lengths.at(-1), log: true, label: "length n", format: asPower },
    y: { min: low * 0.8, max: high, log: true, label: TITLES[inputs.cost], format: asPower },
  });
  frame.add(cursor(frame, result.n));
  data.layers.forEach((layer, place) => frame.add(line(frame, data.lengths.map((n, at) => [n, result.lines[place][at]]), STYLES[place])));
  result.crossings.forEach(({ n }, place) => {
    if (n > data.lengths.at(-1)) return;
    const x = round(frame.x(n)), y = round(frame.y(cost("self-attention", "operations", n, ...rest)));
    const text = `${place ? "n = k d" : "n = d"} = ${count(n)}`;
    const high = frame.inner.bottom - 10 - 17 * place, turned = x + 6 + 7.2 * text.length > frame.inner.right;
    frame.add(
      svg("line", { x1: x, x2: x, y1: y + 7, y2: frame.inner.bottom, class: "v-drop" }),
      svg("circle", { cx: x, cy: y, r: 7, class: "v-crossing" }),
      label(x + (turned ? -6 : 6), high, text, { class: `v-text v-strong v-halo-text${turned ? " v-end" : ""}` }),
    );
  });
  result.here.forEach((value, place) => value !== null && frame.add(dot(frame, result.n, value, STYLES[place])));
  if (!narrow) {
    const ends = result.lines.map((line) => line.at(-1));
    const known = data.layers.map((_, place) => place).filter((place) => ends[place] !== null);
    const heights = apart(known.map((place) => frame.y(ends[place])), 17, frame.inner.top, frame.inner.bottom - 6);
    known.forEach((place, order) =>
      frame.add(label(frame.inner.right + 7, heights[order], data.names[data.layers[place]], { class: `v-text v-middle v-strong ${STYLES[place]}-text` })));
  }
  const rows = data.layers.map((layer) => [data.names[layer], ...data.costs.map((what) => shown(cost(layer, what, result.n, ...rest)))]);
  return {
    draw: narrow ? [key(data, stage.width), frame.sheet] : [frame.sheet],
    outputs: { reach: count(result.n) },
    table: { caption: `n = ${count(result.n)}, d = ${count(d)}, k = ${k}, r = ${inputs.near}`, columns: ["layer", "operations", "sequential steps", "longest path"], rows },
    words: inputs.cost === "operations" ? comparison(result.n, d)
      : `At n = ${count(result.n)}: ${data.layers.map((layer, place) => `${data.names[layer].toLowerCase()} ${shown(result.here[place])}`).join("; ")}.`,
  };
}

// The names of the lines, where there is no room beside them.
function key(data, width) {
  const lines = data.layers.flatMap((layer, place) => [
    svg("path", { d: `M2 ${10 + 18 * place}h34`, class: `v-line ${STYLES[place]}` }),
    label(44, 10 + 18 * place, data.names[layer], { class: `v-text v-middle v-strong ${STYLES[place]}-text` }),
  ]);
  return drawing(width, 18 * data.layers.length + 4, { class: "v-plot", "aria-hidden": "true" }, ...lines);
}

export function mount(root, data) {
  return stage(root, data, { compute, view });
}
