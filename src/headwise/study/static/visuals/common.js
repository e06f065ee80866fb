// What every visual shares: making elements, reading the form, drawing again when something changes, the table
// and the words. A visual gives `compute` and `view`; see docs/study/visuals.md.

const SVG = "http://www.w3.org/2000/svg";
const QUIET = 400; // milliseconds without a change before the new words are told

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// An HTML element; text is always text.
export const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

// An SVG element.
export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

// Text in a drawing.
export const label = (x, y, text, attributes = {}) =>
  svg("text", { x: round(x), y: round(y), class: "v-text", ...attributes }, text);

// Pieces of text one after another, each [text, class].
export const pieces = (x, y, parts, attributes = {}) =>
  svg("text", { x: round(x), y: round(y), class: "v-text", ...attributes }, ...parts.map(([text, style]) => svg("tspan", { class: style }, text)));

// Coordinates to a hundredth of a pixel: shorter, and the same on every machine.
export const round = (value) => Math.round(value * 100) / 100;

export const rectangle = (x, y, width, height, attributes = {}) =>
  svg("rect", { x: round(x), y: round(y), width: round(Math.max(0, width)), height: round(Math.max(0, height)), ...attributes });

// A drawing of real pixels: letters keep their size at every width.
export const drawing = (width, height, attributes, ...children) =>
  svg("svg", { viewBox: `0 0 ${round(width)} ${round(height)}`, width: round(width), height: round(height), ...attributes }, ...children);

const read = (control) => {
  if (control.type === "checkbox") return control.checked;
  if (control.type === "range" || control.type === "number") return Number(control.value);
  return control.value;
};

function controlsOf(root) {
  const found = new Map();
  for (const control of root.querySelectorAll("form [name]")) found.set(control.name, control);
  return found;
}

function outputOf(control) {
  const near = control.id && control.getRootNode().querySelector(`output[for~="${CSS.escape(control.id)}"]`);
  if (near) return near;
  const made = html("output", { class: "visual-value", for: control.id || null });
  control.after(made);
  return made;
}

function tableOf(root) {
  let table = root.querySelector("[data-table] table, details table");
  if (!table) {
    table = html("table");
    const box = html("div", { class: "visual-table-box", tabindex: "0", role: "group", "aria-label": "The numbers as a table" }, table);
    root.append(html("details", { class: "visual-table", "data-table": "" }, html("summary", {}, "Show as table"), box));
  }
  return table;
}

const numeric = (text) => /^[−\d⁰¹²³⁴⁵⁶⁷⁸⁹(]/.test(text);

// Fill a table. The first cell of a row names it.
export function fillTable(table, { caption, columns, rows }) {
  const right = columns.map((_, place) => place > 0 && rows.every((row) => row[place] === "" || numeric(row[place])));
  const head = columns.map((name, place) => html("th", { scope: "col", class: right[place] ? "num" : null }, name));
  const body = rows.map((row) =>
    html("tr", {}, ...row.map((cell, place) =>
      place === 0 ? html("th", { scope: "row" }, cell) : html("td", { class: right[place] ? "num" : null }, cell))));
  table.replaceChildren(
    html("caption", {}, caption),
    html("thead", {}, html("tr", {}, ...head)),
    html("tbody", {}, ...body),
  );
}

// Bring a visual to life.
//
// spec.compute(data, inputs): the numbers; pure
// spec.view(result, inputs, stage): gives { draw: elements, table, words, outputs: { name: text },
//     limits: { name: number }, idle: names of inputs that count for nothing now }
// spec.extra(stage): elements above the drawing that stay (further inputs); they write into stage.own and
//     call stage.change()
export function stage(root, data, spec) {
  const controls = controlsOf(root);
  const figure = root.querySelector("figure") || root.appendChild(html("figure"));
  const words = root.querySelector("[data-words]") || root.appendChild(html("p", { "data-words": "" }));
  const table = tableOf(root);
  const canvas = html("div", { class: "visual-canvas" });
  const peek = html("p", { class: "visual-peek", "aria-hidden": "true" });
  const self = { root, data, own: {}, spots: {}, width: 0, change, peek: (text) => (peek.textContent = text), set };
  let waiting = 0, frame = 0, first = true;

  words.setAttribute("role", "status");
  root.dataset.live = "yes";
  const extra = spec.extra ? spec.extra(self) : [];
  figure.replaceChildren(...extra, canvas, peek);
  root.querySelector("form")?.addEventListener("submit", (event) => event.preventDefault());
  for (const control of controls.values()) {
    control.addEventListener(control.type === "range" || control.type === "text" ? "input" : "change", change);
  }
  new ResizeObserver(() => {
    if (Math.abs(canvas.clientWidth - self.width) >= 1) change();
  }).observe(canvas);

  function inputs() {
    const values = { ...data.defaults };
    for (const [name, control] of controls) values[name] = read(control);
    return { ...values, ...self.own };
  }

  // Give an input another value, as if the reader had: a click in the drawing chooses a row.
  function set(name, value) {
    const control = controls.get(name);
    if (!control) self.own[name] = value;
    else if (control.type === "checkbox") control.checked = value;
    else control.value = String(value);
    change();
  }

  function change() {
    if (!frame) frame = requestAnimationFrame(paint);
  }

  function paint() {
    cancelAnimationFrame(frame);
    frame = 0;
    self.width = canvas.clientWidth || 640;
    const values = inputs();
    const result = spec.compute(data, values);
    const shown = spec.view(result, values, self);
    keepFocus(canvas, () => canvas.replaceChildren(...shown.draw));
    peek.hidden = !canvas.querySelector("[data-key]");
    for (const [name, control] of controls) {
      tell(control, shown.outputs?.[name], shown.limits?.[name]);
      control.disabled = shown.idle?.includes(name) ?? false;
    }
    fillTable(table, shown.table);
    clearTimeout(waiting);
    if (first) words.textContent = shown.words;
    else waiting = setTimeout(() => { if (words.textContent !== shown.words) words.textContent = shown.words; }, QUIET);
    first = false;
  }

  function tell(control, text, limit) {
    if (limit !== undefined) control.max = String(limit);
    if (control.type !== "range") return;
    const said = text ?? control.value;
    outputOf(control).textContent = said;
    if (said === control.value) control.removeAttribute("aria-valuetext");
    else control.setAttribute("aria-valuetext", said);
  }

  paint();
  return self;
}

// Draw again without losing the reader's place: what is drawn anew takes the focus of what it replaces.
function keepFocus(canvas, draw) {
  const held = canvas.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  draw();
  if (held) canvas.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
}

// For groups that listen to the focus of what they hold: by itself that makes an SVG element a stop of Tab.
export const NO_STOP = { tabindex: "-1" };

// Where a key leads from a cell, null where it means nothing to a walk.
export function step(key, [row, column], [rows, columns]) {
  const to = {
    ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
    Home: [row, 0], End: [row, columns - 1],
    PageUp: [0, column], PageDown: [rows - 1, column],
  }[key];
  if (!to) return null;
  return [Math.max(0, Math.min(rows - 1, to[0])), Math.max(0, Math.min(columns - 1, to[1]))];
}

export const plainKey = (event) => !(event.ctrlKey || event.altKey || event.metaKey);
