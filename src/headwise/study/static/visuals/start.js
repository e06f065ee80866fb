// Brings every visual of a page to life: its script and its numbers are fetched when it comes near.

async function start(root) {
  try {
    const [visual, answer] = await Promise.all([
      import(`./${root.dataset.module}.js`),
      fetch(new URL(root.dataset.src, document.baseURI)),
    ]);
    if (!answer.ok) throw new Error(`${root.dataset.src}: ${answer.status}`);
    visual.mount(root, await answer.json());
  } catch (error) {
    root.dataset.live = "no"; // the table and the words that the page came with stay
    console.error(`visual ${root.dataset.visual}: ${error.message}`);
  }
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    start(target);
  }
}, { rootMargin: "600px" });

for (const root of document.querySelectorAll("section[data-visual]")) seen.observe(root);
// Paper shows all of them.
addEventListener("beforeprint", () => {
  for (const root of document.querySelectorAll("section[data-visual]:not([data-live])")) start(root);
});
