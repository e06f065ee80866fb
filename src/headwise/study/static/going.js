// Where to go on: the next activity in teaching order that isn't done. What was skipped comes last.

// `rows`: the elements of the list of all; `stateOf`: from a row to { deck, begun, done }.
export async function nextOf(rows, stateOf) {
  const steps = [];
  for (const row of rows) steps.push({ row, ...(await stateOf(row)) });
  let reached = 0; // cards are reviewed from the first day on, and say nothing of how far somebody has read
  steps.forEach((step, place) => { if (step.begun && !step.deck) reached = place; });
  const open = (step) => !step.done;
  return { begun: steps.some((step) => step.begun), next: steps.slice(reached).find(open) ?? steps.find(open) ?? null };
}

// Say it on the front page's button, which leads to the first activity as long as nothing is known.
export function show(place, { begun, next }) {
  const link = place.querySelector("a");
  if (!next) {
    place.textContent = "All is done: you have read, answered and reviewed everything there is for now.";
    return;
  }
  const to = next.row.querySelector("a");
  link.textContent = `${begun ? "Go on with" : "Start with"} “${to.textContent.trim()}”`;
  link.href = to.getAttribute("href");
}
