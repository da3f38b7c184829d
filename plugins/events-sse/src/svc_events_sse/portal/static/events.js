/* What happens from now on: rows above those that the server has shown. */
"use strict";

const MOST_ROWS = 200;
const MOST_PATHS = 5;
const RETRY_MS = 5000;
const PULSES = ["server_ready", "heartbeat", "metrics"];
const list = document.getElementById("events");
const said = document.getElementById("following");

function cell(row, content) {
  const made = row.insertCell();
  made.append(content);
  return made;
}

/* The paths of an event as the server shows them, but without links; or all that it says. */
function textOf(payload) {
  const entries = Array.isArray(payload.entries) ? payload.entries.map((entry) => entry.path) : [];
  const paths = entries.length === 0 && payload.path ? [payload.path] : entries;
  if (paths.length === 0) return JSON.stringify(payload);
  const more = paths.length - MOST_PATHS;
  return paths.slice(0, MOST_PATHS).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function show(frame) {
  const event = JSON.parse(frame.data);
  if (PULSES.includes(event.event_type) && !list.dataset.types) return;
  const row = list.insertRow(0);
  const time = document.createElement("time");
  time.dateTime = new Date(event.timestamp).toISOString();
  time.textContent = time.dateTime;
  cell(row, time);
  cell(row, event.event_type).className = "keep";
  cell(row, textOf(event.payload || {}));
  showTimes(row);
  while (list.rows.length > MOST_ROWS) list.deleteRow(-1);
  document.getElementById("nothing").hidden = true;
}

/* Shows each whole frame of a text, and keeps the id of the last; returns what is no whole frame yet. */
function take(text, place) {
  const frames = text.split("\n\n");
  const rest = frames.pop();
  for (const frame of frames) {
    const fields = {};
    for (const line of frame.split("\n")) {
      const colon = line.indexOf(": ");
      fields[line.slice(0, colon)] = line.slice(colon + 2);
    }
    if (fields.id) place.last = fields.id;
    if (fields.data) show(fields);
  }
  return rest;
}

/* Reads the stream, and begins again behind the last event when it has ended. An EventSource would have to be
   told the names of all types, which plugins add, and could not renew the session. */
async function follow(place) {
  const query = new URLSearchParams({ last_event_id: place.last });
  if (list.dataset.types) query.set("events", list.dataset.types);
  if (list.dataset.prefix) query.set("path_prefix", list.dataset.prefix);
  try {
    let answer;
    const status = await withSession(async () => {
      answer = await fetch(`/system/events?${query}`, { headers: { Accept: "text/event-stream" } });
      return answer.status;
    });
    if (status === 401) {
      said.textContent = "Your session has ended: sign in again.";
      return;
    }
    if (answer.ok) {
      said.textContent = "New events appear here as they happen.";
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        text = take(text + part.value, place);
      }
    }
  } catch {
    said.textContent = "The connection broke; it is tried again.";
  }
  setTimeout(() => follow(place), RETRY_MS);
}

if (list) follow({ last: list.dataset.place });
