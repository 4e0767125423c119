import type { Socket } from 'node:net';

/** A client with more unread or held output than this is cut off. */
const maxUnreadBytes = 64 * 1024 * 1024;

/**
 * The output to one client, in order. Everything that is sent in one turn of the event loop leaves
 * in one write. It can be held back: by a delayed reply, or because the server plays dead.
 */
export class Outbox {
  readonly #socket: Socket;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #scheduled = false;
  #ending = false;
  #holds = 0;
  #silent = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  send(bytes: Uint8Array): void {
    if (this.#ending) return;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#cutOff();
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  /** Holds back everything that is sent from now on. @returns a function that releases it */
  hold(): () => void {
    this.#flush();
    this.#holds += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holds -= 1;
      this.#flush();
    };
  }

  /** Not even an end is visible while this is on. */
  silence(on: boolean): void {
    if (on) this.#flush();
    this.#silent = on;
    if (!on) this.#flush();
  }

  /**
   * Closes the connection behind everything that was sent. Output that a delay still holds back is
   * lost.
   */
  end(): void {
    if (this.#ending) return;
    this.#ending = true;
    if (this.#holds > 0) this.#waiting = [];
    this.#holds = 0;
    this.#flush();
  }

  #cutOff(): void {
    if (this.#waitingBytes + this.#socket.writableLength > maxUnreadBytes) this.#socket.destroy();
  }

  #flush(): void {
    if (this.#silent || this.#holds > 0) return;
    if (this.#waiting.length > 0) {
      const bytes = Buffer.concat(this.#waiting);
      this.#waiting = [];
      this.#waitingBytes = 0;
      if (this.#socket.writable) this.#socket.write(bytes);
      this.#cutOff();
    }
    if (this.#ending) this.#socket.end();
  }
}
