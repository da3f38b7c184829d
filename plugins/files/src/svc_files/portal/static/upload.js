/* Uploads: files and folders that are chosen or dropped, what becomes of each, and how all of it is taken back. */

import { Line } from "./line.js";
import { Sender, encoded } from "./sending.js";

const MOST_SHOWN = 50;
const MOST_UNDONE_BYTES = 900000;
const upload = document.getElementById("upload");
const list = document.getElementById("uploads");
const total = { files: 0, over: 0, failed: 0, bytes: 0, moved: 0, was: 0 };
const made = { created: [], replaced: [], version: null, folders: new Map() };
const items = new Set();
const line = new Line((text) => { part("trouble").textContent = text ?? ""; });
const sender = new Sender(line, "/files");

function part(name) {
  return upload.querySelector(`[data-part=${name}]`);
}

function sizeText(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/* A file on its way, with a line of the list while it is among the first. */
class Item {
  constructor(path, file) {
    this.path = path;
    this.file = file;
    this.sent = 0;
    this.isCalledOff = false;
    this.isOver = false;
    this.controller = new AbortController();
    total.files += 1;
    total.bytes += file.size;
    items.add(this);
  }

  show() {
    if (this.row || list.childElementCount >= MOST_SHOWN) return;
    this.row = document.createElement("li");
    this.name = document.createElement("span");
    this.name.textContent = this.path.slice(upload.dataset.path.length);
    this.state = document.createElement("span");
    this.state.textContent = "waiting";
    this.bar = document.createElement("progress");
    this.bar.setAttribute("aria-label", this.name.textContent);
    this.bar.max = this.file.size || 1;
    this.bar.value = this.sent;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "link";
    button.textContent = "Cancel";
    button.setAttribute("aria-label", `Cancel ${this.name.textContent}`);
    button.addEventListener("click", () => this.callOff());
    this.row.append(this.name, this.state, button, this.bar);
    list.append(this.row);
  }

  started(text) {
    if (this.isOver) return;
    this.show();
    if (this.row) this.state.textContent = text;
  }

  moved(bytes) {
    this.sent += bytes;
    total.moved += bytes;
    if (this.row) {
      this.bar.value = this.sent;
      this.state.textContent = `${sizeText(this.sent)} of ${sizeText(this.file.size)}`;
    }
    showTotal();
  }

  callOff() {
    if (this.isOver) return;
    this.isCalledOff = true;
    this.controller.abort();
    this.ended("called off", false, null);
  }

  ended(text, isGood, outcome) {
    if (this.isOver) return;
    this.isOver = true;
    items.delete(this);
    total.over += 1;
    if (!isGood) {
      total.failed += 1;
      total.bytes -= this.file.size - this.sent;
      this.show();
    }
    if (outcome) (outcome.created ? made.created : made.replaced).push([outcome.path, outcome.content_hash]);
    else if (isGood) total.was += 1;
    if (this.row && isGood) this.row.remove();
    else if (this.row) {
      this.row.className = "failed";
      this.state.textContent = text;
      this.row.querySelector("button").remove();
      this.bar.remove();
    }
    for (const item of items) {
      if (list.childElementCount >= MOST_SHOWN) break;
      item.show();
    }
    showTotal();
    if (items.size === 0) finish();
  }
}

function showTotal() {
  part("all").hidden = items.size === 0;
  part("bar").max = total.bytes || 1;
  part("bar").value = total.moved;
  part("count").textContent = `${total.over.toLocaleString()} of ${total.files.toLocaleString()} files, ` +
    `${sizeText(total.moved)} of ${sizeText(total.bytes)}`;
}

/* Says what was done, with a form that takes it back; and shows the directory as it is now. */
async function finish() {
  const good = total.over - total.failed;
  const texts = [`Uploaded ${good.toLocaleString()} ${good === 1 ? "file" : "files"}.`];
  if (made.replaced.length) texts.push(`${made.replaced.length.toLocaleString()} of them replaced one.`);
  if (total.was) texts.push(`${total.was.toLocaleString()} of them ${total.was === 1 ? "was" : "were"} there already.`);
  if (total.failed) texts.push(`${total.failed.toLocaleString()} failed.`);
  part("done").textContent = texts.join(" ");
  showUndo();
  try {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("listing");
    if (answer.ok && fresh) {
      showTimes(fresh);
      document.getElementById("listing").replaceWith(fresh);
      document.dispatchEvent(new CustomEvent("listing"));
    }
  } catch {
    // The list stays as it was: what was uploaded is there all the same.
  }
}

function showUndo() {
  const folders = [...made.folders].filter(([, isNew]) => isNew).map(([path]) => path);
  const fields = {
    list: JSON.stringify(made.created),
    replaced: JSON.stringify(made.replaced),
    folders: JSON.stringify(folders),
    version: made.version,
  };
  const form = part("undo");
  form.hidden = !(made.created.length + made.replaced.length) || fields.list.length + fields.replaced.length > MOST_UNDONE_BYTES;
  for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
}

/* Takes files, each with its path below this directory. */
async function take(found) {
  if (!found.length) return;
  if (items.size === 0) {
    Object.assign(total, { files: 0, over: 0, failed: 0, bytes: 0, moved: 0, was: 0 });
    Object.assign(made, { created: [], replaced: [], version: null, folders: new Map() });
    list.replaceChildren();
    part("done").textContent = "";
    part("undo").hidden = true;
  }
  const taken = found.map(({ name, file }) => new Item(upload.dataset.path + name, file));
  for (const item of taken) item.show();
  showTotal();
  await look(found);
  sender.add(taken.filter((item) => !item.isOver));
}

/* What there is before: the version, and which of the folders are new. */
async function look(found) {
  const ask = (path) => line.ask({ isCalledOff: false, controller: new AbortController() }, "HEAD", `/files${encoded(path)}`);
  if (made.version === null) made.version = (await ask(upload.dataset.path.replace(/\/$/, "") || "/")).headers.get("x-svc-version");
  const tops = new Set(found.filter(({ name }) => name.includes("/")).map(({ name }) => name.slice(0, name.indexOf("/"))));
  for (const top of tops) {
    const path = upload.dataset.path + top;
    if (!made.folders.has(path)) made.folders.set(path, (await ask(path)).status === 404);
  }
}

/* The files of what was dropped, those of folders with their paths. */
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ name: file.name, file }));
  const found = [];
  while (entries.length) {
    const entry = entries.shift();
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => { entry.file(resolve, reject); });
      found.push({ name: entry.fullPath.replace(/^\//, ""), file });
    } else {
      const reader = entry.createReader();
      for (;;) {
        // A reader answers a part at a time, at last none.
        const part = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
        if (!part.length) break;
        entries.push(...part);
      }
    }
  }
  return found;
}

if (upload) {
  upload.hidden = false;
  for (const input of upload.querySelectorAll("input[type=file]")) {
    input.addEventListener("change", () => {
      take([...input.files].map((file) => ({ name: file.webkitRelativePath || file.name, file })));
      input.value = "";
    });
  }
  part("pause").addEventListener("click", () => {
    if (line.isPaused) line.resume();
    else line.pause();
    part("pause").textContent = line.isPaused ? "Resume" : "Pause";
  });
  part("cancel").addEventListener("click", () => {
    for (const item of [...items]) item.callOff();
    if (line.isPaused) part("pause").click();
  });
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      upload.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) {
    document.addEventListener(kind, () => upload.classList.remove("over"));
  }
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    try {
      take(await filesOf(event.dataTransfer));
    } catch (error) {
      part("trouble").textContent = `What was dropped can't be read: ${error.message}`;
    }
  });
  addEventListener("beforeunload", (event) => { if (items.size) event.preventDefault(); });
}
