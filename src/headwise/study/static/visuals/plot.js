// Axes, lines and points.

import { drawing, label, NO_STOP, plainKey, round, svg } from "./common.js";
import { raised } from "./words.js";

// Round numbers between two ends, about so many.
export function niceTicks(low, high, about) {
  const rough = (high - low) / about;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const width = [1, 2, 5, 10].find((one) => one * unit >= rough) * unit;
  const found = [];
  for (let at = Math.ceil(low / width - 1e-9); at * width <= high + width * 1e-9; at++) found.push(Number((at * width).toPrecision(12)));
  return found;
}

// Powers of ten between two ends, so few that their labels fit.
export function powerTicks(low, high, about) {
  const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((to - from + 1) / about));
  const found = [];
  for (let at = from; at <= to; at += every) found.push(10 ** at);
  return found;
}

export const asPower = (value) => {
  const exponent = Math.round(Math.log10(value));
  return exponent === 0 ? "1" : exponent === 1 ? "10" : `10${raised(exponent)}`;
};

function scaleOf({ min, max, log }, from, to) {
  const place = log ? (value) => (Math.log(value) - Math.log(min)) / (Math.log(max) - Math.log(min)) : (value) => (value - min) / (max - min);
  return (value) => from + place(value) * (to - from);
}

// An empty plot. Its `x` and `y` turn values into places; `add` draws.
// Each axis: { min, max, log, label, ticks, format }
export function plot({ width, height, x, y, title, left = 56, right = 16, top = 28, bottom = 44, attributes = {} }) {
  const inner = { left, top, right: width - right, bottom: height - bottom };
  const place = { x: scaleOf(x, inner.left, inner.right), y: scaleOf(y, inner.bottom, inner.top) };
  const sheet = drawing(width, height, { role: "img", "aria-label": title, class: "v-plot", ...attributes });
  const xTicks = x.ticks || (x.log ? powerTicks(x.min, x.max, (width - left) / 52) : niceTicks(x.min, x.max, Math.max(2, (width - left) / 90)));
  const yTicks = y.ticks || (y.log ? powerTicks(y.min, y.max, (height - top - bottom) / 34) : niceTicks(y.min, y.max, Math.max(2, (height - top - bottom) / 50)));
  const axes = svg("g", { "aria-hidden": "true" });
  for (const tick of yTicks) {
    axes.append(
      svg("line", { x1: inner.left, x2: inner.right, y1: round(place.y(tick)), y2: round(place.y(tick)), class: "v-rule" }),
      label(inner.left - 8, place.y(tick), (y.format || String)(tick), { class: "v-text v-soft v-end v-middle" }),
    );
  }
  for (const tick of xTicks) {
    const at = place.x(tick);
    axes.append(
      svg("line", { x1: round(at), x2: round(at), y1: inner.bottom, y2: inner.bottom + 5, class: "v-tick" }),
      label(at, inner.bottom + 19, (x.format || String)(tick), { class: "v-text v-soft v-center" }),
    );
  }
  axes.append(
    svg("line", { x1: inner.left, x2: inner.right, y1: inner.bottom, y2: inner.bottom, class: "v-axis" }),
    label(inner.right, inner.bottom + 37, x.label, { class: "v-text v-soft v-end" }),
    label(2, 14, y.label, { class: "v-text v-soft" }),
  );
  sheet.append(axes);
  return { sheet, inner, x: place.x, y: place.y, add: (...parts) => sheet.append(...parts) };
}

// A line through [x, y] values; it breaks where y is null.
export function line(frame, points, style) {
  let path = "", pen = "M";
  for (const [x, y] of points) {
    if (y === null || !Number.isFinite(y)) { pen = "M"; continue; }
    path += `${pen}${round(frame.x(x))} ${round(frame.y(y))}`;
    pen = "L";
  }
  return svg("path", { d: path, class: `v-line ${style}` });
}

// A vertical line where the reader stands.
export const cursor = (frame, x) =>
  svg("line", { x1: round(frame.x(x)), x2: round(frame.x(x)), y1: frame.inner.top, y2: frame.inner.bottom, class: "v-cursor" });

export const dot = (frame, x, y, style, radius = 4.5) =>
  svg("circle", { cx: round(frame.x(x)), cy: round(frame.y(y)), r: radius, class: `v-dot ${style}` });

// Move places apart until none is nearer than `room` to the next, staying between two ends.
export function apart(places, room, low, high) {
  const order = places.map((at, index) => ({ at, index })).sort((a, b) => a.at - b.at);
  order.forEach((one, place) => { one.at = Math.max(one.at, place ? order[place - 1].at + room : low); });
  for (let place = order.length - 1; place >= 0; place--) {
    order[place].at = Math.min(order[place].at, place === order.length - 1 ? high : order[place + 1].at - room);
  }
  const moved = [];
  for (const { at, index } of order) moved[index] = at;
  return moved;
}

// Points to choose from, by click or by arrow keys: a list, from left to right.
// points: [{ key, x, y (pixels), say, style, shape }]; chosen: a key
export function chooser(stage, { id, name, points, chosen, pick, radius = 6 }) {
  const order = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  const current = order.some((point) => point.key === chosen) ? chosen : order[0]?.key;
  const list = svg("g", { role: "listbox", "aria-label": name, "aria-orientation": "horizontal", ...NO_STOP });
  for (const point of order) {
    const shape = point.square
      ? svg("rect", { x: round(point.x - radius + 1), y: round(point.y - radius + 1), width: 2 * radius - 2, height: 2 * radius - 2, class: `v-point ${point.style}` })
      : svg("circle", { cx: round(point.x), cy: round(point.y), r: radius, class: `v-point ${point.style}` });
    const halo = svg("circle", { cx: round(point.x), cy: round(point.y), r: radius + 5, class: "v-halo" });
    const wide = svg("circle", { cx: round(point.x), cy: round(point.y), r: Math.max(12, radius), class: "v-touch" });
    list.append(svg("g", {
      role: "option", "aria-label": point.say, "aria-selected": String(point.key === chosen),
      tabindex: point.key === current ? "0" : "-1", "data-key": `${id}:${point.key}`,
    }, wide, halo, shape));
  }
  const items = [...list.children];
  const choose = (item) => {
    item.focus({ preventScroll: true });
    pick(item.dataset.key.slice(id.length + 1));
  };
  list.addEventListener("keydown", (event) => {
    if (!plainKey(event) || !event.target.closest("[data-key]")) return;
    const at = items.indexOf(event.target.closest("[data-key]"));
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(items[Math.max(0, Math.min(items.length - 1, to))]);
  });
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[data-key]");
    if (item) choose(item);
  });
  for (const event of ["pointerover", "focusin"]) {
    list.addEventListener(event, ({ target }) => {
      const item = target.closest("[data-key]");
      if (item) stage.peek(item.getAttribute("aria-label"));
    });
  }
  // the chosen point once more on top, where another hides it
  const top = list.querySelector('[aria-selected="true"] .v-point')?.cloneNode();
  top?.classList.add("v-above");
  return svg("g", {}, list, ...(top ? [top] : []));
}
