import type { ServerResponse } from 'node:http';

const frameMs = 100;
/** So that the page, and whatever is between, sees that the connection lives. */
const beatMs = 10_000;
const beat = 'event: beat\ndata:\n\n';
/** A browser that takes nothing for so many beats is gone, or holds memory for nothing. */
const mostSilentBeats = 3;
/** Each may hold all values until it has read them. */
const mostBrowsers = 100;

/**
 * The newest value of each name, told to browsers as server-sent events. Each event is a JSON list of
 * `[name, value]`, or `[name]` for one that is gone; the first one after a connection holds all of them.
 * A browser that reads slowly gets fewer and newer values: at most one of each name waits for it.
 */
export class LiveValues {
  readonly #values = new Map<string, string>();
  readonly #browsers = new Set<Browser>();
  /** The first event of a connection; browsers share it. Undefined: to be made. */
  #all: Buffer | undefined;

  get browsers(): number {
    return this.#browsers.size;
  }

  /** As JSON has it. */
  get(name: string): unknown {
    const entry = this.#values.get(name);
    return entry === undefined ? undefined : (JSON.parse(entry) as unknown[])[1];
  }

  set(name: string, value: unknown): void {
    const entry = JSON.stringify([name, value], asJson);
    if (this.#values.get(name) === entry) return;
    this.#values.set(name, entry);
    this.#all = undefined;
    for (const browser of this.#browsers) browser.changed(name);
  }

  delete(name: string): void {
    if (!this.#values.delete(name)) return;
    this.#all = undefined;
    for (const browser of this.#browsers) browser.changed(name);
  }

  /**
   * Answers with a stream that ends with the connection, or with `close`.
   * @returns false, and does nothing, when there are too many browsers, or when the response waits behind
   * another one of its connection: nothing would ever tell that it is gone
   */
  stream(response: ServerResponse): boolean {
    if (this.#browsers.size >= mostBrowsers || response.socket === null) return false;
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    this.#all ??= Buffer.from(eventOf([...this.#values.values()]));
    const browser = new Browser(response, this.#values, this.#all);
    this.#browsers.add(browser);
    response.once('close', () => {
      this.#browsers.delete(browser);
      browser.close();
    });
    return true;
  }

  close(): void {
    for (const browser of this.#browsers) browser.close();
  }
}

class Browser {
  readonly #response: ServerResponse;
  readonly #values: ReadonlyMap<string, string>;
  readonly #changed: Set<string> = new Set();
  readonly #beat: NodeJS.Timeout;
  #frame: NodeJS.Timeout | undefined;
  /** It has not taken the last event yet. */
  #isFull = false;
  #silentBeats = 0;

  constructor(response: ServerResponse, values: ReadonlyMap<string, string>, all: Buffer) {
    this.#response = response;
    this.#values = values;
    this.#beat = setInterval(() => this.#tellAlive(), beatMs);
    response.on('drain', () => {
      this.#isFull = false;
      this.#silentBeats = 0;
      if (this.#changed.size > 0) this.#later();
    });
    this.#write(all);
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
    // They wait until it has read.
    if (this.#isFull) return;
    const entries = [...this.#changed].map(
      (name) => this.#values.get(name) ?? JSON.stringify([name]),
    );
    this.#changed.clear();
    this.#write(eventOf(entries));
  }

  #tellAlive(): void {
    if (this.#isFull) this.#silentBeats += 1;
    else this.#write(beat);
    if (this.#silentBeats >= mostSilentBeats) this.#response.destroy();
  }

  #write(text: string | Buffer): void {
    if (this.#isFull || !this.#response.writable) return;
    this.#isFull = !this.#response.write(text);
  }
}

function eventOf(entries: readonly string[]): string {
  return `data: [${entries.join(',')}]\n\n`;
}

/** Tokens go beyond what a number holds. */
function asJson(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
