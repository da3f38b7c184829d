/* Requests that outlast a pause, a lost connection, a busy server and a session that has to be renewed. */

const AT_ONCE = 3;
const BUSY = [429, 502, 503, 504];
const LONGEST_WAIT_MS = 15000;

/* What a server refused: its status and its answer. */
export class Refused extends Error {
  constructor(status, answer) {
    super(answer.error || `failed (${status})`);
    this.status = status;
    this.answer = answer;
  }
}

/* What somebody called off. */
export class CalledOff extends Error {}

/* What requests about several files are for: nobody calls it off. */
export const ALL = { isCalledOff: false, controller: new AbortController() };

/* The way to the server. `say` is told what it waits for, null where it goes on. */
export class Line {
  constructor(say) {
    this.say = say;
    this.running = 0;
    this.queue = [];
    this.goesOn = null;
    this.controller = new AbortController();
  }

  get isPaused() {
    return this.goesOn !== null;
  }

  pause() {
    if (this.isPaused) return;
    this.held = new Promise((resolve) => { this.goesOn = resolve; });
    this.controller.abort();
  }

  resume() {
    if (!this.isPaused) return;
    this.controller = new AbortController();
    this.goesOn();
    this.goesOn = null;
    this.held = undefined;
  }

  /* Sends a request, and again until the server has answered it; answers what it said. `item` may be called off. */
  async ask(item, method, url, body, type) {
    await this.#turn();
    try {
      for (let attempt = 0; ; attempt += 1) {
        await this.held;
        if (item.isCalledOff) throw new CalledOff();
        const answer = await this.#once(item, method, url, body, type);
        if (answer === null) {
          if (this.isPaused || item.isCalledOff) continue;
          this.say("The connection is lost. The upload goes on by itself when it is back.");
          await waited(Math.min(500 * 2 ** attempt, LONGEST_WAIT_MS));
        } else if (BUSY.includes(answer.status)) {
          this.say("The server is busy. The upload goes on in a moment.");
          await waited(Math.min(Number(answer.headers.get("retry-after")) * 1000 || 1000, 60000));
        } else {
          this.say(null);
          return answer;
        }
      }
    } finally {
      this.#done();
    }
  }

  /* The same, for what answers JSON. */
  async call(item, method, url, value) {
    const answer = await this.ask(item, method, url, JSON.stringify(value), "application/json");
    return expect(answer);
  }

  /* One attempt; null where there was no answer. */
  async #once(item, method, url, body, type) {
    const signal = AbortSignal.any([this.controller.signal, item.controller.signal]);
    const headers = type ? { "Content-Type": type } : {};
    let answer = null;
    try {
      await withSession(async () => {
        answer = await fetch(url, { method, body, headers, signal });
        return answer.status;
      });
      return answer;
    } catch {
      return null;
    }
  }

  async #turn() {
    if (this.running >= AT_ONCE) await new Promise((resolve) => this.queue.push(resolve));
    else this.running += 1;
  }

  #done() {
    const following = this.queue.shift();
    if (following) following();
    else this.running -= 1;
  }
}

/* Answers the JSON of an answer that is good. */
export async function expect(answer) {
  if (answer.ok) return answer.json();
  let said = {};
  try {
    said = await answer.json();
  } catch {
    // Not of the server itself: its status has to do.
  }
  throw new Refused(answer.status, said);
}

function waited(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    }
    addEventListener("online", done);
  });
}
