import { closeSync, constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { UsageError } from '../failure.ts';

/** Lines kept for a reader that does not read; the oldest go first. */
const maxQueued = 1_000;
const retryMs = 20;
const endWithinMs = 1_000;

/**
 * Writes lines to a file descriptor without ever waiting for its reader. A pipe that is not read,
 * or a terminal that was stopped with Ctrl-S, must not keep `run` from renewing.
 *
 * A pipe or terminal is opened once more, non-blocking, because the program shares the descriptor
 * that we were given. A file never blocks and keeps the shared offset. A descriptor that can be
 * neither (a socket) is written to in the background.
 */
export class LineWriter {
  readonly #fd: number;
  readonly #kind: 'file' | 'own' | 'background';
  readonly #queue: Buffer[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #isWriting = false;
  #isBroken = false;
  #whenEmpty: (() => void) | undefined;

  /** @throws UsageError when `fd` is not open */
  constructor(fd: number) {
    let stats: ReturnType<typeof fstatSync>;
    try {
      stats = fstatSync(fd);
    } catch (error) {
      throw new UsageError(
        `--events-fd ${fd} is not open (${(error as Error).message}): redirect it, as in ` +
          `${fd}>events.log`,
      );
    }
    const own = stats.isFIFO() || stats.isCharacterDevice() ? openOwn(fd) : undefined;
    this.#fd = own ?? fd;
    this.#kind = own !== undefined ? 'own' : stats.isFile() ? 'file' : 'background';
  }

  write(text: string): void {
    if (this.#isBroken) return;
    if (this.#queue.length >= maxQueued) {
      // Not the first: a part of it may have been written.
      this.#queue.splice(1, 1);
      this.#dropped += 1;
    }
    this.#queue.push(Buffer.from(text));
    this.#flush();
  }

  /** Resolves when everything is written, or after a second. */
  async end(): Promise<void> {
    if (this.#queue.length > 0 && !this.#isBroken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, endWithinMs);
        this.#whenEmpty = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#isBroken = true;
    clearTimeout(this.#timer);
    if (this.#kind === 'own') closeSync(this.#fd);
  }

  #flush(): void {
    if (this.#isWriting || this.#timer !== undefined) return;
    while (this.#queue.length > 0 && !this.#isBroken) {
      if (this.#kind === 'background') {
        this.#flushInBackground();
        return;
      }
      try {
        this.#wrote(writeSync(this.#fd, this.#queue[0] as Buffer));
      } catch (error) {
        this.#failed(error as NodeJS.ErrnoException);
        return;
      }
    }
  }

  #flushInBackground(): void {
    this.#isWriting = true;
    write(this.#fd, this.#queue[0] as Buffer, (error, bytes) => {
      this.#isWriting = false;
      if (error !== null) this.#failed(error);
      else this.#wrote(bytes);
      this.#flush();
    });
  }

  #wrote(bytes: number): void {
    const rest = (this.#queue[0] as Buffer).subarray(bytes);
    if (rest.length > 0) this.#queue[0] = rest;
    else this.#queue.shift();
    if (this.#dropped > 0 && rest.length === 0) {
      this.#queue.unshift(Buffer.from(`incumbent: ${this.#dropped} events were not read\n`));
      this.#dropped = 0;
    }
    if (this.#queue.length === 0) this.#whenEmpty?.();
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (error.code === 'EAGAIN' || error.code === 'EINTR') {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#flush();
      }, retryMs);
      // Not a reason to live on.
      this.#timer.unref();
      return;
    }
    // The reader is gone; the program goes on.
    this.#isBroken = true;
    this.#whenEmpty?.();
  }
}

function openOwn(fd: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
    return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return undefined;
  }
}
