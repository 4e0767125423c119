import { StoreUnavailableError } from '../../base/errors.ts';
import type { Send } from './driver.ts';
import { runScript } from './run-script.ts';
import { touchScript } from './scripts.ts';

/**
 * Resolves once so many replicas have a version that was written.
 *
 * WAIT counts for the writes of its own connection only. On a connection that was opened anew it
 * counts all replicas as up to date. So a write of no meaning goes before it. The connection must
 * be the same before and after, and the server must still have the version.
 *
 * @throws StoreUnavailableError when that cannot be said
 */
export async function acknowledge(
  send: Send,
  key: string,
  version: string,
  wait: { readonly replicas: number; readonly timeoutMs: number },
): Promise<void> {
  const connection = async () => String(await send(['CLIENT', 'ID']));
  const stands = async () => Number(await runScript(send, touchScript, [key], [version])) === 1;
  const before = await connection();
  if (!(await stands())) throw unacknowledged('it was overtaken or lost');
  const replicas = Number(await send(['WAIT', `${wait.replicas}`, `${wait.timeoutMs}`]));
  if (replicas < wait.replicas) {
    throw unacknowledged(
      `${replicas} of ${wait.replicas} replicas have it after ${wait.timeoutMs} ms`,
    );
  }
  if ((await connection()) !== before) throw unacknowledged('the client has reconnected');
  if (!(await stands())) throw unacknowledged('it was overtaken or lost');
}

/** Far more than can be on their way: each write is conditional on a version that was read. */
const mostUnacknowledged = 1_000;

/** Versions of ours that the server may have, while too few replicas have them. */
export class UnacknowledgedWrites {
  readonly #versions = new Set<string>();

  add(version: string): void {
    this.#versions.add(version);
    const [oldest] = this.#versions;
    if (this.#versions.size > mostUnacknowledged && oldest !== undefined) {
      this.#versions.delete(oldest);
    }
  }

  has(version: string): boolean {
    return this.#versions.has(version);
  }

  acknowledged(version: string): void {
    this.#versions.delete(version);
  }
}

function unacknowledged(why: string): StoreUnavailableError {
  return new StoreUnavailableError(`a write was not acknowledged by the replicas: ${why}`);
}
