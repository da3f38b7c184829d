"""The first page: takes the key out of the address and signs the browser in. The only one with a script."""

from __future__ import annotations

from svc_sharing.page.frame import document, page_fields

__all__ = ["OPENING_FIELDS", "OPENING_PAGE"]

_SCRIPT = """
const say = text => { document.getElementById("state").textContent = text; };
async function open() {
  const key = location.hash.slice(1);
  if (!key) {
    say("This address is not complete. Open the whole link that you were given.");
    return;
  }
  say("Opening the link\\u2026");
  try {
    const answer = await fetch("/share/session", {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: JSON.stringify({key}),
      credentials: "same-origin",
      cache: "no-store",
    });
    if (answer.ok) {
      location.replace("/share/files/");
    } else if (answer.status === 401 || answer.status === 400) {
      say("This link does not work any more: it has expired, or was withdrawn. Ask for another.");
    } else if (answer.status === 429) {
      say("There were too many attempts from your network. Wait some minutes, then open the link again.");
    } else {
      say("The server cannot open the link now. Try again later.");
    }
  } catch {
    say("The server could not be reached. Check your connection, then open the link again.");
  }
}
addEventListener("hashchange", open);
open();
"""

_BODY = """<div class="card"><div class="text">
<h1>Shared files</h1>
<p id="state" role="status"></p>
<noscript><p>To open a link this page needs JavaScript, once. The pages behind it do not.</p></noscript>
</div></div>"""

OPENING_PAGE = document("Shared files", _BODY, _SCRIPT)
OPENING_FIELDS = page_fields(_SCRIPT)
