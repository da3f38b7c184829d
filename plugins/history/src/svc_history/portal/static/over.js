/* Two pictures over each other: the slider says how much of the later one is shown. */
"use strict";

for (const figure of document.querySelectorAll("[data-over]")) {
  const slider = figure.querySelector("input");
  const upper = figure.querySelector(".upper");
  const show = () => { upper.style.clipPath = `inset(0 0 0 ${slider.value}%)`; };
  figure.hidden = false;
  slider.addEventListener("input", show);
  show();
}
