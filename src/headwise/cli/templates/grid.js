// The small maps of all heads.

const heads = [...document.querySelectorAll("#grid button")];
const lines = [...document.querySelectorAll("#grid .layer")].map((line) => [...line.querySelectorAll("button")]);
const buttonOf = (layer, head) => heads.find(({ dataset }) => +dataset.layer === layer && +dataset.head === head);

function paintGrid() {
  const density = Math.min(devicePixelRatio || 1, 2);
  for (const button of heads) {
    const canvas = button.querySelector("canvas");
    const size = Math.max(24, Math.round(canvas.clientWidth * density));
    paintSmall(canvas, +button.dataset.layer, +button.dataset.head, size);
  }
}

function peek(button) {
  const line = $("peek");
  line.replaceChildren();
  if (!button) return;
  line.append(make("b", button.dataset.name), button.dataset.words);
}

function setUpGrid(choose) {
  const grid = $("grid");
  grid.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) choose(+button.dataset.layer, +button.dataset.head, "click");
  });
  grid.addEventListener("pointerover", (event) => peek(event.target.closest("button") || chosenButton()));
  grid.addEventListener("pointerleave", () => peek(chosenButton()));
  grid.addEventListener("keydown", (event) => {
    const at = heads.indexOf(event.target.closest("button"));
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const layer = lines.findIndex((line) => line.includes(heads[at])), head = lines[layer].indexOf(heads[at]);
    const inLine = (line) => line && line[Math.min(head, line.length - 1)];
    const target = {
      ArrowLeft: () => heads[at - 1], ArrowRight: () => heads[at + 1],
      ArrowUp: () => inLine(lines[layer - 1]), ArrowDown: () => inLine(lines[layer + 1]),
      Home: () => lines[layer][0], End: () => lines[layer].at(-1),
    }[event.key];
    if (!target) return;
    event.preventDefault();
    const to = target();
    if (to) {
      choose(+to.dataset.layer, +to.dataset.head, "walk");
      to.focus();
    }
  });
  $("kinds").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const on = button.getAttribute("aria-pressed") !== "true";
    for (const other of $("kinds").querySelectorAll("button")) other.setAttribute("aria-pressed", String(on && other === button));
    for (const head of heads) head.classList.toggle("away", on && head.dataset.kind !== button.dataset.kind);
    // the panel shows a head of the kind that is picked out: the one that does it most
    if (on && chosenButton().dataset.kind !== button.dataset.kind) {
      const share = ({ dataset: { layer, head, kind } }) => factsOf(+layer, +head).shares[kind] || 0;
      const best = heads.filter((head) => !head.classList.contains("away")).reduce((a, b) => (share(b) > share(a) ? b : a));
      choose(+best.dataset.layer, +best.dataset.head, "kind");
    }
  });
}

const chosenButton = () => heads.find((button) => button.getAttribute("aria-current") === "true");

function markGrid(layer, head) {
  for (const button of heads) {
    const own = button === buttonOf(layer, head);
    button.tabIndex = own ? 0 : -1;
    if (own) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  peek(chosenButton());
}
