/* Files by their pieces: what the server has is not sent again, and many small files are one commit. */

import { ALL, CalledOff, Refused, expect } from "./line.js";

const LANES = 2;
const GROUP = 64;
const MOST_FILES = 200;
const ATTEMPTS = 3;

/* A worker that hashes. */
class Hasher {
  constructor() {
    this.worker = new Worker("/portal/static/svc_files.portal/hashing.js");
    this.waiting = new Map();
    this.last = 0;
    this.worker.addEventListener("message", ({ data: { id, result, error } }) => {
      const { resolve, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) reject(new Error(error));
      else resolve(result);
    });
    this.worker.addEventListener("error", (event) => {
      for (const { reject } of this.waiting.values()) reject(new Error(`hashing failed: ${event.message}`));
      this.waiting.clear();
    });
  }

  ask(blob, size, whole = false) {
    this.last += 1;
    const id = this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, blob, size, whole });
    });
  }
}

/* Sends items: `{ path, file, controller, isCalledOff, moved(bytes), ended(text, isGood, outcome) }`. */
export class Sender {
  constructor(line, filesUrl) {
    this.line = line;
    this.filesUrl = filesUrl;
    this.hasher = new Hasher();
    this.queue = [];
    this.lanes = 0;
    this.config = null;
  }

  add(items) {
    this.queue.push(...items);
    while (this.lanes < LANES) {
      this.lanes += 1;
      this.#lane().finally(() => { this.lanes -= 1; });
    }
  }

  async #lane() {
    while (this.queue.length) {
      const items = this.#batch();
      try {
        this.config ??= this.line.call(ALL, "GET", "/blobs/config");
        this.piece = (await this.config).chunk_size;
        await this.#send(items);
      } catch (error) {
        this.config = null;
        for (const item of items) if (!item.isOver) fail(item, error);
      }
    }
  }

  /* Small files go together; a large one goes alone. */
  #batch() {
    const small = 256 * 1024;
    const taken = [this.queue.shift()];
    while (taken[0].file.size <= small && taken.length < MOST_FILES && this.queue.length) {
      if (this.queue[0].file.size > small) break;
      taken.push(this.queue.shift());
    }
    return taken;
  }

  async #send(items) {
    let ready = [];
    if (items.length === 1) {
      if (await this.#isThere(items[0])) return;
      if (await this.#sendPieces(items[0])) ready = items;
    } else {
      ready = await this.#sendSmall(items);
    }
    for (let attempt = 1; ready.length; attempt += 1) {
      const made = await this.#commit(ready, attempt);
      if (made === null) return;
      ready = made;
    }
  }

  /* Whether a large file is at its path already, byte for byte. */
  async #isThere(item) {
    if (item.file.size <= this.piece) return false;
    const head = await this.line.ask(item, "HEAD", this.filesUrl + encoded(item.path));
    if (!head.ok || Number(head.headers.get("x-svc-size")) !== item.file.size) return false;
    if ((await this.hasher.ask(item.file, this.piece, true)) !== head.headers.get("x-svc-content-hash")) return false;
    item.moved(item.file.size);
    item.ended("was there", true, null);
    return true;
  }

  /* Sends what is missing of one file, a group of pieces at a time. */
  async #sendPieces(item) {
    const step = GROUP * this.piece;
    const group = (start) => this.hasher.ask(item.file.slice(start, start + step), this.piece);
    item.hashes = [];
    item.started("uploading");
    let next = group(0);
    for (let start = 0; start < item.file.size; start += step) {
      const hashes = await next;
      // The next ones are hashed while these are sent.
      next = start + step < item.file.size ? group(start + step) : null;
      next?.catch(() => {});
      item.hashes.push(...hashes);
      await this.#offer(hashes.map((hash, index) => this.#piece(item, hash, start + index * this.piece)));
      if (item.isOver) return false;
    }
    return true;
  }

  async #sendSmall(items) {
    const pieces = [];
    const ready = [];
    for (const item of items) {
      if (item.isCalledOff) continue;
      item.started("uploading");
      try {
        item.hashes = await this.hasher.ask(item.file, this.piece);
        ready.push(item);
        pieces.push(...item.hashes.map((hash, index) => this.#piece(item, hash, index * this.piece)));
      } catch (error) {
        fail(item, error);
      }
    }
    await this.#offer(pieces);
    return ready.filter((item) => !item.isOver);
  }

  #piece(item, hash, start) {
    return { item, hash, blob: item.file.slice(start, start + this.piece) };
  }

  /* Sends those pieces that the server has not, and counts all as moved. */
  async #offer(pieces) {
    if (!pieces.length) return;
    const hashes = pieces.map((piece) => piece.hash);
    const { needed } = await this.line.call(ALL, "POST", "/blobs/check", { hashes });
    const missing = new Set(needed);
    await Promise.all(pieces.map(async ({ item, hash, blob }) => {
      try {
        if (missing.delete(hash)) {
          const content = await blob.arrayBuffer();
          await expect(await this.line.ask(item, "PUT", `/blobs/chunks/${hash}`, content, "application/octet-stream"));
        }
        item.moved(blob.size);
      } catch (error) {
        if (!item.isOver) fail(item, error);
      }
    }));
  }

  /* Makes files of what was sent. Answers those to try again, null when there are none. */
  async #commit(items, attempt) {
    const files = items.map((item) => ({
      path: item.path,
      chunk_hashes: item.hashes,
      size: item.file.size,
      ...(item.file.type ? { content_type: item.file.type } : {}),
    }));
    try {
      const made = await this.line.call(ALL, "POST", "/blobs/commit", { files });
      items.forEach((item, index) => item.ended("done", true, made.committed[index]));
      return null;
    } catch (error) {
      return this.#again(items, error, attempt);
    }
  }

  async #again(items, error, attempt) {
    if (!(error instanceof Refused)) throw error;
    const { missing, operation } = error.answer;
    if (Array.isArray(missing) && attempt < ATTEMPTS) {
      // A collection took pieces that no file had yet.
      for (const item of items) {
        item.moved(-item.sent);
        if (!item.isOver) await this.#sendPieces(item);
      }
      return items.filter((item) => !item.isOver);
    }
    if (!Number.isInteger(operation) || !items[operation]) throw error;
    fail(items[operation], error);
    return items.filter((item) => !item.isOver);
  }
}

export function encoded(path) {
  return path.split("/").map(encodeURIComponent).join("/");
}

function fail(item, error) {
  if (error instanceof CalledOff) item.ended("called off", false, null);
  else item.ended(error.message, false, null);
}
