/* A worker: the BLAKE3 hashes of the pieces of a file, or that of the whole. It keeps no more than a piece. */
"use strict";

importScripts("/portal/static/svc_files.portal/blake3.umd.min.js");

const hasher = hashwasm.createBLAKE3();

/* Reads a file in pieces of a size. */
async function* pieces(blob, size) {
  for (let start = 0; start < blob.size; start += size) {
    yield new Uint8Array(await blob.slice(start, start + size).arrayBuffer());
  }
}

async function hashesOf(blob, size) {
  const made = await hasher;
  const hashes = [];
  for await (const piece of pieces(blob, size)) hashes.push(made.init().update(piece).digest("hex"));
  return hashes;
}

async function hashOf(blob, size) {
  const made = await hashwasm.createBLAKE3();
  made.init();
  for await (const piece of pieces(blob, size)) made.update(piece);
  return made.digest("hex");
}

self.addEventListener("message", async ({ data: { id, blob, size, whole } }) => {
  try {
    self.postMessage({ id, result: await (whole ? hashOf : hashesOf)(blob, size) });
  } catch (error) {
    self.postMessage({ id, error: error.name === "NotReadableError" ? "the file can't be read any more" : String(error) });
  }
});
