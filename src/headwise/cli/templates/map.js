// The large map of one head: a picture, tokens along both axes, and one weight at a time.

const LABEL = 11; // pixels of a label's letters
const map = { layer: 0, head: 0, row: 0, column: 0, large: false, cell: 8, across: 90, above: 90 };

function fontOf() {
  return `${LABEL}px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
}

function shorten(text, context, room) {
  if (context.measureText(text).width <= room) return text;
  const letters = [...text];
  while (letters.length > 1 && context.measureText(letters.join("") + "…").width > room) letters.pop();
  return letters.join("") + "…";
}

const labelOf = (cell) => (page.exact ? tokens[cell] : `${firstOf(cell)} ${tokens[firstOf(cell)]}`);
const labelPartsOf = (cell) => (page.exact ? [tokenOf(cell)] : [`${firstOf(cell)} `, tokenOf(firstOf(cell))]);

function sizeCanvas(canvas, width, height) {
  const density = Math.min(devicePixelRatio || 1, 2, 4096 / Math.max(width, height));
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  return context;
}

function layOut() {
  const box = $("map");
  const context = $("key-labels").getContext("2d");
  context.font = fontOf();
  const longest = Math.max(...Array.from({ length: side }, (_, cell) => context.measureText(labelOf(cell)).width));
  const room = printing ? 620 : box.clientWidth;
  const limit = room < 420 ? 76 : 110;
  map.across = map.above = Math.ceil(Math.min(longest, limit)) + 12;
  const whole = Math.max(1, (room - map.across - 18) / side);
  map.cell = map.large && !printing ? Math.max(15, whole) : Math.min(whole, 34);
}

function paintMap() {
  layOut();
  const { cell, across, above } = map;
  $("map").classList.toggle("large", map.large);
  const size = cell * side;
  document.querySelector(".corner").style.cssText = `width:${across}px;height:${above}px`;

  const sheet = sizeCanvas($("picture"), size, size);
  const small = document.createElement("canvas");
  paint(small, matrixOf(map.layer, map.head), side);
  sheet.imageSmoothingEnabled = false;
  sheet.drawImage(small, 0, 0, size, size);

  const ink = printing ? "#000" : getComputedStyle(document.documentElement).getPropertyValue("--ink");
  const keys = sizeCanvas($("key-labels"), size, above);
  const queries = sizeCanvas($("query-labels"), across, size);
  for (const context of [keys, queries]) {
    context.font = fontOf();
    context.fillStyle = ink;
    context.textBaseline = "middle";
  }
  queries.textAlign = "right";
  painted.row = painted.column = -1;
  pointAt(map.row, map.column, false);
}

// The tokens along both axes. Labels that would overlap, each other or the two that are picked, are left out.
const painted = { row: -1, column: -1 };
function paintLabels() {
  const { cell, across, above } = map;
  const size = cell * side, every = Math.ceil((LABEL + 3) / cell);
  const middle = (at) => Math.max(LABEL / 2 + 1, Math.min(size - LABEL / 2 - 1, (at + 0.5) * cell));
  const draw = (context, picked, put) => {
    for (let at = 0, last = -size; at < side; at += every) {
      if (middle(at) - last < LABEL) continue; // the last label may be moved inward
      last = middle(at);
      const text = `\u2068${shorten(labelOf(at), context, above - 10)}\u2069`; // of its own direction, as in the page
      if (Math.abs(last - middle(picked)) >= LABEL + 3) put(text, last);
    }
  };
  if (painted.row !== map.row) {
    const context = $("query-labels").getContext("2d");
    context.clearRect(0, 0, across, size);
    draw(context, map.row, (text, at) => context.fillText(text, across - 6, at));
  }
  if (painted.column !== map.column) {
    const context = $("key-labels").getContext("2d");
    context.clearRect(0, 0, size, above);
    draw(context, map.column, (text, at) => {
      context.save();
      context.translate(at, above - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0);
      context.restore();
    });
  }
  Object.assign(painted, { row: map.row, column: map.column });
}

// Show the weight of one cell. Everything that shows a row follows.
function pointAt(row, column, follow) {
  map.row = Math.max(0, Math.min(side - 1, row));
  map.column = Math.max(0, Math.min(side - 1, column));
  const { cell } = map;
  const put = (id, values) => { for (const [name, value] of Object.entries(values)) $(id).style[name] = value; };
  put("row-band", { top: `${map.row * cell}px`, height: `${cell}px` });
  put("column-band", { left: `${map.column * cell}px`, width: `${cell}px` });
  put("spot", { left: `${map.column * cell}px`, top: `${map.row * cell}px`, width: `${cell}px`, height: `${cell}px` });
  const middle = (at) => Math.max(0, Math.min(side * cell - 16, (at + 0.5) * cell - 8));
  put("query-now", { top: `${middle(map.row)}px` });
  put("key-now", { left: `${middle(map.column)}px` });
  $("query-now").replaceChildren(...labelPartsOf(map.row));
  $("key-now").replaceChildren(...labelPartsOf(map.column));
  paintLabels();
  const weight = matrixOf(map.layer, map.head)[map.row * side + map.column] / 1000;
  const more = page.exact ? "" : " on average";
  $("readout").replaceChildren(...nameOf(map.row), " → ", ...nameOf(map.column), `: ${weight.toFixed(3)}${more}`);
  if (follow) reveal();
}

// Keep the cell in sight when the keyboard moves it.
function reveal() {
  const box = $("map");
  const left = map.column * map.cell, top = map.row * map.cell;
  const width = box.clientWidth - map.across, height = box.clientHeight - map.above;
  if (left < box.scrollLeft) box.scrollLeft = left;
  if (left + map.cell > box.scrollLeft + width) box.scrollLeft = left + map.cell - width;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + map.cell > box.scrollTop + height) box.scrollTop = top + map.cell - height;
}

function setUpMap(rowChosen) {
  const box = $("map"), sheet = $("sheet");
  const cellAt = (event) => {
    const frame = sheet.getBoundingClientRect();
    return [Math.floor((event.clientY - frame.top) / map.cell), Math.floor((event.clientX - frame.left) / map.cell)];
  };
  sheet.addEventListener("pointermove", (event) => pointAt(...cellAt(event), false));
  sheet.addEventListener("click", (event) => {
    pointAt(...cellAt(event), false);
    rowChosen(firstOf(map.row));
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const to = {
      ArrowLeft: [map.row, map.column - 1], ArrowRight: [map.row, map.column + 1],
      ArrowUp: [map.row - 1, map.column], ArrowDown: [map.row + 1, map.column],
      PageUp: [map.row - 10, map.column], PageDown: [map.row + 10, map.column],
      Home: [map.row, 0], End: [map.row, side - 1],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    pointAt(...to, true);
    rowChosen(firstOf(map.row));
  });
  for (const [id, large] of [["fit", false], ["large", true]]) {
    $(id).addEventListener("click", () => {
      map.large = large;
      $("fit").setAttribute("aria-pressed", String(!large));
      $("large").setAttribute("aria-pressed", String(large));
      paintMap();
      reveal();
    });
  }
}
