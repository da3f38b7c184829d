/* The selection of all rows. */
"use strict";

function offerAll() {
  const head = document.querySelector("#entries thead th");
  if (!head) return;
  const all = document.createElement("input");
  all.type = "checkbox";
  all.setAttribute("aria-label", "Select all");
  all.addEventListener("change", () => {
    for (const box of document.querySelectorAll("#entries [name=paths]")) box.checked = all.checked;
  });
  head.append(all);
}

offerAll();
document.addEventListener("listing", offerAll);
