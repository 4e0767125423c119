import type { Server } from './server.ts';

/** A change of a key that may not be on the disk's surface yet. */
interface Unsynced {
  readonly key: string;
  readonly before: string | undefined;
  readonly atMs: number;
}

/** How late a change may reach the disk with `appendfsync everysec`, and about so with `no`. */
const syncedWithinMs = { always: 0, everysec: 1_000, no: 30_000 } as const;

/**
 * The append-only file of a running server. A copy from the primary ends it, and it begins anew
 * behind that with a rewrite. Until this is done, the disk holds the data that the node had before
 * the copy.
 */
export class AppendOnlyFile {
  readonly #server: Server;
  /** `waits`: it is to be rewritten from what is in memory, and counts from then on. */
  #state: 'off' | 'waits' | 'on' = 'off';
  #unsynced: Unsynced[] = [];

  constructor(server: Server) {
    this.#server = server;
  }

  /** `aof_enabled` of INFO. */
  get isEnabled(): boolean {
    return this.#state !== 'off';
  }

  get isRewriting(): boolean {
    return this.#server.children.current?.kind === 'aof';
  }

  get waits(): boolean {
    return this.#state === 'waits';
  }

  /** The file holds the data that were loaded. */
  goOn(): void {
    this.#state = 'on';
  }

  stop(): void {
    if (this.#state === 'on') this.#write();
    if (this.isRewriting) this.#server.children.kill();
    this.#state = 'off';
    this.#unsynced = [];
  }

  /** `startAppendOnly` */
  start(): void {
    if (this.#state !== 'off') return;
    this.#state = 'waits';
    this.startRewrite();
  }

  /** When no other child runs. */
  startRewrite(): void {
    const server = this.#server;
    if (this.#state !== 'waits' || server.children.current !== undefined) return;
    server.children.start({
      kind: 'aof',
      forMs: server.machine.speeds.saveMs(server.data.size),
      done: () => {
        this.#state = 'on';
      },
    });
  }

  /** @param before the value of the key until now */
  note(key: string, before: string | undefined): void {
    if (this.#state !== 'on') return;
    const atMs = this.#server.nowMs;
    const earliestMs = atMs - this.#syncedWithinMs;
    const isLong = this.#unsynced.length > 64 && (this.#unsynced[32]?.atMs ?? 0) < earliestMs;
    if (isLong) this.#unsynced = this.#unsynced.filter((each) => each.atMs >= earliestMs);
    this.#unsynced.push({ key, before, atMs });
  }

  /** The process ends. @param powerFails what was not synced is gone */
  end(powerFails: boolean): void {
    if (this.#state !== 'on') return;
    const { data, nowMs } = this.#server;
    if (powerFails) {
      const lost = this.#unsynced.filter(({ atMs }) => atMs > nowMs - this.#syncedWithinMs);
      for (const { key, before } of lost.reverse()) data.put(key, before);
    }
    this.#write();
  }

  get #syncedWithinMs(): number {
    const policy = this.#server.settings.text('appendfsync') as keyof typeof syncedWithinMs;
    return syncedWithinMs[policy];
  }

  #write(): void {
    this.#server.machine.disk.aof = this.#server.data.copy();
  }
}
