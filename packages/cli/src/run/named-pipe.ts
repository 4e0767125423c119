import { execFile } from 'node:child_process';
import { constants, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { GuardError } from '../guard/index.ts';

/** Folder and pipe are made in this time, or the program is not started. */
const pipeWithinMs = 5_000;

/** A program that says more than this without a line break says nothing. */
const longestLine = 4_096;

/**
 * A pipe with a name, which any language can open and write to as a file. It stands alone in a folder
 * that only this user may enter.
 */
export class NamedPipe {
  readonly directory: string;
  readonly path: string;
  readonly #socket: Socket;
  #partial = '';

  private constructor(directory: string, path: string) {
    this.directory = directory;
    this.path = path;
    // For writing too: so it has no end while the program has not opened it, or has closed it. And
    // a program that opens it does not wait for a reader.
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#socket.unref();
    // A pipe that fails says nothing more. Its readers bound how long they wait for words.
    this.#socket.on('error', () => {});
  }

  /**
   * @param name of the pipe; also a part of the name of the folder
   * @throws GuardError when it cannot be made; the reason of `signal`
   */
  static async make(name: string, signal: AbortSignal): Promise<NamedPipe> {
    try {
      const directory = await mkdtemp(join(tmpdir(), `incumbent-${name}-`));
      try {
        const path = join(directory, name);
        const bounds = { signal, timeout: pipeWithinMs };
        await promisify(execFile)('mkfifo', ['-m', '600', path], bounds);
        return new NamedPipe(directory, path);
      } catch (error) {
        await removeFolder(directory);
        throw error;
      }
    } catch (error) {
      signal.throwIfAborted();
      const why = `the named pipe of the program cannot be made: ${(error as Error).message}`;
      throw new GuardError('CANNOT_START', why);
    }
  }

  /** The beginning of a line that still lacks its end. */
  get partial(): string {
    return this.#partial;
  }

  read(onLine: (line: string) => void): void {
    this.#socket.setEncoding('utf8').on('data', (text: unknown) => {
      const lines = `${this.#partial}${String(text)}`.split('\n');
      this.#partial = (lines.pop() ?? '').slice(-longestLine);
      for (const line of lines) onLine(line);
    });
  }

  /** Removes the folder, with all in it. Never rejects. */
  async remove(): Promise<void> {
    this.#socket.destroy();
    await removeFolder(this.directory);
  }
}

/** A folder that stays is no reason for another end of the run. */
async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => {});
}
