"use strict";
// Adds what needs a script: sorting, filtering and copying. Without it the page says the same.
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compared = (a, b) =>
        column === 0 ? value(a).localeCompare(value(b), undefined, { numeric: true }) : Number(value(a)) - Number(value(b));
      body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * compared(a, b)));
    });
  });
}
const tools = document.getElementById("tools");
if (tools) {
  tools.hidden = false;
  const rows = [...document.querySelectorAll("#documents tbody tr")];
  const documents = [...document.querySelectorAll("#where .document")];
  const sentences = [...document.querySelectorAll("#where article")];
  const filter = () => {
    const text = document.getElementById("filter-text").value.toLowerCase();
    const worse = document.getElementById("filter-worse")?.checked;
    const better = (one) => worse && !(Number(one.dataset.gain) < 0);
    for (const one of [...rows, ...documents]) {
      one.hidden = better(one) || !one.textContent.toLowerCase().includes(text);
    }
    for (const one of sentences) one.hidden = better(one);
    if (text || worse) document.querySelector("#where .others").open = true;
  };
  for (const input of tools.querySelectorAll("[id^=filter]")) input.addEventListener("input", filter);
  const places = new Map(sentences.map((one, place) => [one, place]));
  document.getElementById("sort-worst")?.addEventListener("input", (event) => {
    const key = event.target.checked ? (one) => Number(one.dataset.gain) : (one) => places.get(one);
    for (const one of [...sentences].sort((a, b) => key(a) - key(b))) one.parentElement.append(one);
  });
}
for (const block of document.querySelectorAll("details.copyable")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("pre").textContent);
    button.textContent = "Copied";
  });
  block.append(button);
}
const unfold = () => {  // the document that a link leads to, and what it is folded in
  let one = document.getElementById(location.hash.slice(1));
  for (; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
};
window.addEventListener("hashchange", unfold);
unfold();
let folded = [];  // on the screen, but not on paper
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const one of folded) one.open = true;
});
window.addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});
