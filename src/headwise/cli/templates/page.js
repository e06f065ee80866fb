// Puts the parts together.

function choose(layer, head, how) {
  map.layer = layer;
  map.head = head;
  chosenToken = opened(layer, head, chosenToken);
  markGrid(layer, head);
  showFacts(layer, head);
  paintMap();
  showToken(chosenToken);
  if ($("pairs").open) fillPairs();
  const at = heads.indexOf(buttonOf(layer, head));
  $("before").disabled = at === 0;
  $("after").disabled = at === heads.length - 1;
  history.replaceState(null, "", `#${addressOf(layer, head)}`);
  for (const row of tableRows()) row.classList.toggle("chosen", row.dataset.at === `${layer}.${head}`);
  if (how === "row" || (how === "click" && matchMedia("(max-width: 1179px)").matches)) {
    $("detail").scrollIntoView();
    $("detail").focus({ preventScroll: true });
  }
}

function chooseToken(query) {
  pointAt(cellOf(query), map.column, false);
  showToken(query);
}

function step(by) {
  const { layer, head } = heads[heads.indexOf(buttonOf(map.layer, map.head)) + by].dataset;
  choose(+layer, +head, "step");
}

const tableRows = () => document.querySelectorAll(".all tr[data-at]");

function repaint() {
  paintRamp();
  repaintInput();
  paintGrid();
  paintMap();
  showToken(chosenToken);
  const dark = theme() === "dark";
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
}

async function begin() {
  try {
    await unpackAll();
  } catch (error) {
    const note = make("p", "The maps can't be shown: this browser can't unpack the weights (it needs to be of 2023 or later). The table below holds the same heads in numbers.", { class: "note", role: "alert" });
    document.querySelector("main").before(note);
    return;
  }
  for (const id of ["detail", "reading", "more"]) $(id).hidden = false;
  setUpGrid(choose);
  for (const one of document.querySelectorAll(".all table")) one.classList.add("live");
  document.querySelector(".all").addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-at]");
    if (!row || !getSelection().isCollapsed || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(...row.dataset.at.split(".").map(Number), "row");
  });
  setUpKeys(chooseToken);
  setUpMap(showToken);
  const [layer, head] = startingPlace();
  const [query, key] = startingPair(layer, head);
  chosenToken = query;
  map.row = cellOf(query);
  map.column = cellOf(key);
  choose(layer, head, "start");
  repaint();

  $("theme").hidden = false;
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
    repaint();
  });
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));
  $("pairs").addEventListener("toggle", () => { if ($("pairs").open) fillPairs(); });
  $("every").addEventListener("toggle", () => { if ($("every").open) fillEvery(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  addEventListener("hashchange", () => choose(...startingPlace(), "address"));
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(repaint, 120); });
  const print = (on) => { printing = on; repaint(); };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  document.documentElement.dataset.ready = "yes";
}

begin();
