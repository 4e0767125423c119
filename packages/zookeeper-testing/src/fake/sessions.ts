import { createHash } from 'node:crypto';

export interface Session {
  readonly id: bigint;
  readonly password: Uint8Array;
  timeoutMs: number;
  /** When it ends unless something is heard of it, by the fake's clock. */
  expiresAtMs: number;
  /** The server that the client attached to last. It may write only there. */
  owner: object;
}

/**
 * The sessions of all servers. They end in steps of a tick, as the server sorts them into buckets.
 */
export class Sessions {
  readonly #tickTimeMs: number;
  readonly #byId = new Map<bigint, Session>();
  #created = 0n;

  constructor(tickTimeMs: number) {
    this.#tickTimeMs = tickTimeMs;
  }

  get(id: bigint): Session | undefined {
    return this.#byId.get(id);
  }

  values(): IterableIterator<Session> {
    return this.#byId.values();
  }

  /** @param serverId the highest byte of the session's id */
  create(timeoutMs: number, nowMs: number, owner: object, serverId: number): Session {
    this.#created += 1n;
    const id = (BigInt(serverId) << 56n) | (0x1000_0000n + this.#created);
    const session: Session = { id, password: passwordOf(id), timeoutMs, expiresAtMs: 0, owner };
    this.#byId.set(id, session);
    this.touch(session, nowMs);
    return session;
  }

  /** Something was heard of the client. */
  touch(session: Session, nowMs: number): void {
    const tick = this.#tickTimeMs;
    session.expiresAtMs = (Math.floor((nowMs + session.timeoutMs) / tick) + 1) * tick;
  }

  delete(id: bigint): void {
    this.#byId.delete(id);
  }

  due(nowMs: number): readonly Session[] {
    return [...this.#byId.values()].filter(({ expiresAtMs }) => expiresAtMs <= nowMs);
  }
}

/** Sessions of one server without a quorum: only it knows them, and nothing ends them by time. */
export class LocalSessions {
  readonly #serverId: number;
  readonly #ids = new Set<bigint>();
  #created = 0n;

  constructor(serverId: number) {
    this.#serverId = serverId;
  }

  create(): bigint {
    this.#created += 1n;
    const id = (BigInt(this.#serverId) << 56n) | this.#created;
    this.#ids.add(id);
    return id;
  }

  has(id: bigint): boolean {
    return this.#ids.has(id);
  }

  delete(id: bigint): void {
    this.#ids.delete(id);
  }

  clear(): void {
    this.#ids.clear();
  }
}

/** 16 bytes that no client guesses by accident. They are the same in every run. */
export function passwordOf(id: bigint): Uint8Array {
  return new Uint8Array(createHash('sha256').update(`fake ${id}`).digest().subarray(0, 16));
}
