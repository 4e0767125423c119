import type { ServerResponse } from 'node:http';

const frameMs = 100;
/** So that a browser, and whatever is between, sees that the connection lives. */
const beatMs = 10_000;

/**
 * The newest value of each name, told to browsers as server-sent events. Each event is a JSON list of
 * `[name, value]`, or `[name]` for one that is gone; the first one after a connection holds all of them.
 * A browser that reads slowly gets fewer and newer values: at most one of each name waits for it.
 */
export class LiveValues {
  readonly #values = new Map<string, string>();
  readonly #browsers = new Set<Browser>();

  get browsers(): number {
    return this.#browsers.size;
  }

  set(name: string, value: unknown): void {
    const entry = JSON.stringify([name, value], asJson);
    if (this.#values.get(name) === entry) return;
    this.#values.set(name, entry);
    for (const browser of this.#browsers) browser.changed(name);
  }

  delete(name: string): void {
    if (!this.#values.delete(name)) return;
    for (const browser of this.#browsers) browser.changed(name);
  }

  /** Answers with a stream that ends with the connection, or with `close`. */
  stream(response: ServerResponse): void {
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    const browser = new Browser(response, this.#values);
    this.#browsers.add(browser);
    response.once('close', () => {
      this.#browsers.delete(browser);
      browser.close();
    });
  }

  close(): void {
    for (const browser of this.#browsers) browser.close();
  }
}

class Browser {
  readonly #response: ServerResponse;
  readonly #values: ReadonlyMap<string, string>;
  readonly #changed: Set<string>;
  readonly #beat: NodeJS.Timeout;
  #frame: NodeJS.Timeout | undefined;
  /** It has not taken the last event yet. */
  #isFull = false;

  constructor(response: ServerResponse, values: ReadonlyMap<string, string>) {
    this.#response = response;
    this.#values = values;
    this.#changed = new Set(values.keys());
    this.#beat = setInterval(() => this.#write(':\n\n'), beatMs);
    response.on('drain', () => {
      this.#isFull = false;
      if (this.#changed.size > 0) this.#later();
    });
    this.#send();
  }

  changed(name: string): void {
    this.#changed.add(name);
    this.#later();
  }

  close(): void {
    clearInterval(this.#beat);
    clearTimeout(this.#frame);
    this.#response.end();
  }

  #later(): void {
    if (this.#isFull) return;
    this.#frame ??= setTimeout(() => this.#send(), frameMs);
  }

  #send(): void {
    this.#frame = undefined;
    const entries = [...this.#changed].map(
      (name) => this.#values.get(name) ?? JSON.stringify([name]),
    );
    this.#changed.clear();
    this.#write(`data: [${entries.join(',')}]\n\n`);
  }

  #write(text: string): void {
    if (this.#isFull || !this.#response.writable) return;
    this.#isFull = !this.#response.write(text);
  }
}

/** Tokens go beyond what a number holds. */
function asJson(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
