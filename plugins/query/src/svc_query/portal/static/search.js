/* Shows what is found while somebody types. Without it the form does the same. */
"use strict";

const WAIT_MS = 250;
const LEAST = 2;
const form = document.getElementById("search");
const said = document.getElementById("said");
let timer = null;
let controller = null;
let last = "";

function addressOf(typing) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim()) fields.append(name, value);
  if (typing) fields.append("typing", "1");
  return `${form.action}?${fields}`;
}

async function find() {
  const address = addressOf(true);
  if (address === last || form.elements.q.value.trim().length < LEAST) return;
  last = address;
  // What was asked before is of no use any more: the server is told so.
  controller?.abort();
  controller = new AbortController();
  const { signal } = controller;
  try {
    const answer = await fetch(address, { signal });
    if (answer.redirected) location.assign(addressOf(false));
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("results");
    if (signal.aborted || !fresh) return;
    showTimes(fresh);
    document.getElementById("results").replaceWith(fresh);
    history.replaceState(null, "", addressOf(false));
    const count = fresh.querySelector("#found")?.textContent ?? fresh.querySelector("[role=alert]")?.textContent;
    said.textContent = count ?? "";
  } catch {
    // It was overtaken by the next one, or the server is not there: the button still asks.
  }
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(find, WAIT_MS);
});
form.addEventListener("submit", () => {
  clearTimeout(timer);
  controller?.abort();
});
