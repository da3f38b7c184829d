/* Says how long ago the slider stands for while it moves. */
"use strict";

const back = document.getElementById("back");
const unit = document.getElementById("unit");
const ago = document.getElementById("ago");
for (const input of [back, unit]) {
  input.addEventListener("input", () => { ago.textContent = `${back.value} ${unit.value}`; });
}
