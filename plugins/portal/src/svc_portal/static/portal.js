/* What all pages have: times in the reader's own time, and requests by a session that renews itself. */
"use strict";

function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    if (!Number.isNaN(moment.getTime())) {
      element.title = element.textContent;
      element.textContent = moment.toLocaleString();
    }
  }
}

showTimes(document);

/* Sends a request as `send()` does, again if its session could be renewed; both answer a status. */
async function withSession(send) {
  const status = await send();
  if (status !== 401) return status;
  const renewed = await fetch("/portal/renew", { method: "POST" });
  return renewed.ok ? send() : 401;
}
