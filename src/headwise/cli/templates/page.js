// Puts the parts together.

function choose(layer, head, how) {
  map.layer = layer;
  map.head = head;
  markGrid(layer, head);
  showFacts(layer, head);
  paintMap();
  showToken(chosenToken);
  if ($("pairs").open) fillPairs();
  const last = page.layers * page.heads - 1, at = layer * page.heads + head;
  $("before").disabled = at === 0;
  $("after").disabled = at === last;
  history.replaceState(null, "", `#${layer}.${head}`);
  for (const row of $("all").tBodies[0].rows) row.classList.toggle("chosen", row.dataset.at === `${layer}.${head}`);
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
  const at = map.layer * page.heads + map.head + by;
  choose(Math.floor(at / page.heads), at % page.heads, "step");
}

function fromAddress() {
  const found = /^#(\d+)\.(\d+)$/.exec(location.hash);
  if (found && +found[1] < page.layers && +found[2] < page.heads) return [+found[1], +found[2]];
  return page.first;
}

function repaint() {
  paintRamp();
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
  $("all").classList.add("live");
  $("all").tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (!getSelection().isCollapsed || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(...row.dataset.at.split(".").map(Number), "row");
  });
  setUpWords(chooseToken);
  setUpMap(showToken);
  const [layer, head] = fromAddress();
  const [query, key] = factsOf(layer, head).strongest;
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
  addEventListener("hashchange", () => choose(...fromAddress(), "address"));
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(repaint, 120); });
  const print = (on) => { printing = on; repaint(); };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  document.documentElement.dataset.ready = "yes";
}

begin();
