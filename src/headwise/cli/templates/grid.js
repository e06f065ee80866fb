// The small maps of all heads.

const heads = [...document.querySelectorAll("#grid button")];
const buttonOf = (layer, head) => heads[layer * page.heads + head];

function paintGrid() {
  const density = Math.min(devicePixelRatio || 1, 2);
  for (const button of heads) {
    const canvas = button.querySelector("canvas");
    const size = Math.max(24, Math.round(canvas.clientWidth * density));
    paint(canvas, matrixOf(+button.dataset.layer, +button.dataset.head), size);
  }
}

function peek(button) {
  const line = $("peek");
  line.replaceChildren();
  if (!button) return;
  const { layer, head } = button.dataset;
  line.append(make("b", `${layer}.${head}`), factsOf(+layer, +head).words);
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
    const first = at - (at % page.heads);
    const to = {
      ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - page.heads, ArrowDown: at + page.heads,
      Home: first, End: first + page.heads - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (heads[to]) {
      choose(+heads[to].dataset.layer, +heads[to].dataset.head, "walk");
      heads[to].focus();
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
