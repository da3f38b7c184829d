/* Parts of a page that stay as they are now: an element with an id and data-live="5" is read every 5 seconds. */
"use strict";

const LONGEST_MS = 60000;

async function read(id) {
  const answer = await fetch(location.href);
  // Elsewhere is where one signs in: the page itself goes there.
  if (answer.redirected) location.reload();
  if (!answer.ok) return null;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.getElementById(id);
}

function keep(element, waited) {
  const interval = Number(element.dataset.live) * 1000;
  setTimeout(async () => {
    let fresh = null;
    if (!document.hidden) {
      try {
        fresh = await read(element.id);
      } catch {
        // The server is not there; it is asked again, less often.
      }
    }
    // Whoever is about to press a button in it is not disturbed.
    if (fresh === null || element.contains(document.activeElement)) {
      keep(element, document.hidden ? interval : Math.min(waited * 2, LONGEST_MS));
      return;
    }
    showTimes(fresh);
    element.replaceWith(fresh);
    if (fresh.dataset.live) keep(fresh, Number(fresh.dataset.live) * 1000);
  }, waited);
}

for (const element of document.querySelectorAll("[data-live]")) {
  keep(element, Number(element.dataset.live) * 1000);
}
