import { EventEmitter } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { PgPool, PgQuery } from '../src/backends/postgres/client.ts';
import { PoolExhaustedError } from '../src/backends/postgres/driver.ts';
import { PgPoolDriver } from '../src/backends/postgres/pg-pool.ts';
import { OperationTimeoutError } from '../src/base/errors.ts';

/** A client that answers when it is told to. */
class FakeClient extends EventEmitter {
  readonly processID = 7;
  readonly sent: string[] = [];
  readonly released: unknown[] = [];
  #answer: ((rows: unknown[]) => void) | undefined;
  isSilent = false;

  async query({ text }: PgQuery): Promise<{ rows: unknown[] }> {
    this.sent.push(text);
    if (!this.isSilent) return { rows: [[text]] };
    return new Promise((resolve) => {
      this.#answer = (rows) => resolve({ rows });
    });
  }

  answer(): void {
    this.#answer?.([]);
  }

  release(error?: unknown): void {
    this.released.push(error);
  }
}

class FakePool extends EventEmitter {
  readonly clients: FakeClient[] = [];
  readonly options: { max: number };
  readonly waiting: ((client: FakeClient) => void)[] = [];
  /** The clients that are handed out next, before new ones. */
  readonly next: FakeClient[] = [];
  ending = false;
  idleCount = 0;

  constructor(max: number) {
    super();
    this.options = { max };
  }

  get totalCount(): number {
    return this.clients.length;
  }

  connect(callback: (error: undefined, client: FakeClient) => void): void {
    const give = (client: FakeClient) => callback(undefined, client);
    if (this.clients.length === this.options.max) {
      this.waiting.push(give);
      return;
    }
    const client = this.next.shift() ?? new FakeClient();
    this.clients.push(client);
    queueMicrotask(() => give(client));
  }

  /** Takes a connection, as the program itself does. */
  take(): Promise<FakeClient> {
    return new Promise((resolve) => this.connect((_error, client) => resolve(client)));
  }
}

function driverOn(max: number): [FakePool, PgPoolDriver] {
  const pool = new FakePool(max);
  return [pool, new PgPoolDriver(pool as unknown as PgPool)];
}

const late = () => new OperationTimeoutError('asking', 1);
const settle = () => new Promise((resolve) => setImmediate(resolve));
const nothing = () => {};

describe('statements on a Pool of pg', () => {
  test('give the connection back, closed if it may be of no use', async () => {
    const [pool, driver] = driverOn(1);
    expect(await driver.query('select 1', [], undefined)).toEqual([['select 1']]);
    expect(pool.clients[0]?.released).toEqual([false]);
  });

  test('that are not answered in time cost their connection; others that are stopped do not', async () => {
    for (const [reason, released] of [
      [late(), [true]],
      [new Error('not wanted any more'), [false]],
    ] as const) {
      const [pool, driver] = driverOn(1);
      const client = new FakeClient();
      client.isSilent = true;
      pool.next.push(client);
      const stop = new AbortController();
      const asked = driver.query('select 1', [], stop.signal);
      await settle();
      expect(client.sent).toEqual(['select 1']);
      stop.abort(reason);
      client.answer();
      await asked;
      expect(client.released).toEqual(released);
    }
  });

  test('that nobody waits for any more are not sent when a connection becomes free', async () => {
    const [pool, driver] = driverOn(1);
    const taken = await pool.take();
    const stop = new AbortController();
    const asked = driver.query('update', [], stop.signal);
    await settle();
    stop.abort(late());
    await expect(asked).rejects.toThrow(PoolExhaustedError);
    await expect(asked).rejects.toThrow('all 1 connections of the Pool are in use');
    pool.waiting[0]?.(taken);
    await settle();
    expect(taken.sent).toEqual([]);
    expect(taken.released).toEqual([undefined]);
  });

  test('go by the connection that listens while nothing else is on it', async () => {
    const [pool, driver] = driverOn(3);
    const listener = await driver.listen('incumbent', nothing, nothing);
    expect(listener.pid).toBe(7);
    const [listening] = pool.clients as [FakeClient];
    await driver.query('select 1', [], undefined);
    expect(pool.clients.length).toBe(1);
    listening.isSilent = true;
    const slow = driver.query('select 2', [], undefined);
    await driver.query('select 3', [], undefined);
    expect(pool.clients[1]?.sent).toEqual(['select 3']);
    listening.answer();
    await slow;
    await listener.close();
    expect(listening.released).toEqual([true]);
    expect(listening.sent).toEqual(['listen "incumbent"', 'select 1', 'select 2']);
  });

  test('that wait behind one that is closed go by another connection', async () => {
    const [pool, driver] = driverOn(2);
    const listener = await driver.listen('incumbent', nothing, nothing);
    const [listening] = pool.clients as [FakeClient];
    listening.isSilent = true;
    const first = driver.query('select 1', [], undefined);
    // No connection is free but this one.
    const other = await pool.take();
    const second = driver.query('select 2', [], undefined);
    await settle();
    const closed = listener.close();
    await settle();
    expect(listening.released).toEqual([]);
    listening.answer();
    await first;
    await closed;
    expect(listening.released).toEqual([true]);
    pool.waiting[0]?.(other);
    await second;
    expect(listening.sent).toEqual(['listen "incumbent"', 'select 1']);
    expect(other.sent).toEqual(['select 2']);
  });

  test('that only the connection that listens does not answer cost it, and that is told', async () => {
    const [pool, driver] = driverOn(3);
    const lost: unknown[] = [];
    await driver.listen('incumbent', nothing, (error) => lost.push(error));
    const [listening] = pool.clients as [FakeClient];
    listening.isSilent = true;
    const stop = new AbortController();
    driver.query('select 1', [], stop.signal).catch(() => {});
    await settle();
    stop.abort(late());
    await settle();
    // The server may be slow, or the row locked.
    expect(listening.released).toEqual([]);
    await driver.query('select 2', [], undefined);
    expect(pool.clients[1]?.sent).toEqual(['select 2']);
    expect(listening.released).toEqual([true]);
    expect(String(lost[0])).toContain('does not answer');
    // The server tells both: of the end, and of an error after it.
    listening.emit('error', new Error('terminated'));
    listening.emit('error', new Error('terminated unexpectedly'));
    listening.emit('end');
    expect(lost.length).toBe(1);
  });

  test('that are answered late do not cost the connection that listens', async () => {
    const [pool, driver] = driverOn(3);
    await driver.listen('incumbent', nothing, nothing);
    const [listening] = pool.clients as [FakeClient];
    listening.isSilent = true;
    const stop = new AbortController();
    const slow = driver.query('select 1', [], stop.signal);
    await settle();
    stop.abort(late());
    listening.answer();
    await slow;
    listening.isSilent = false;
    await settle();
    await driver.query('select 2', [], undefined);
    expect(listening.released).toEqual([]);
    expect(listening.sent).toEqual(['listen "incumbent"', 'select 1', 'select 2']);
  });

  test('end with the Pool, which is not kept from ending', async () => {
    const [pool, driver] = driverOn(2);
    await driver.listen('incumbent', nothing, nothing);
    pool.ending = true;
    await expect(driver.query('select 1', [], undefined)).rejects.toThrow('was ended');
    expect(pool.clients[0]?.released).toEqual([true]);
  });

  test('end with the Pool while the connection that is to listen is being opened, or has asked', async () => {
    for (const endsWhen of ['opening', 'asking'] as const) {
      const [pool, driver] = driverOn(2);
      const client = new FakeClient();
      client.isSilent = true;
      pool.next.push(client);
      const listening = driver.listen('incumbent', nothing, nothing);
      const refused = expect(listening).rejects.toThrow('was ended');
      if (endsWhen === 'asking') await settle();
      pool.ending = true;
      await settle();
      client.answer();
      await refused;
      // Its `end` waits for this.
      expect(client.released).toEqual([true]);
    }
  });

  test('do not end the process when the server ends a connection right after it was opened', async () => {
    const [pool, driver] = driverOn(2);
    let isHeard = false;
    pool.connect = (callback) => {
      const client = new FakeClient();
      callback(undefined, client);
      // In the same chunk as the server's greeting: no turn of the event loop lies between.
      isHeard = client.emit('error', new Error('terminating connection'));
    };
    await driver.query('select 1', [], undefined);
    expect(isHeard).toBe(true);
  });

  test('do not end the process when an idle connection fails', () => {
    const [pool] = driverOn(2);
    expect(() => pool.emit('error', new Error('terminated'))).not.toThrow();
  });

  test('notifications of other channels are not ours', async () => {
    const [pool, driver] = driverOn(2);
    const heard: string[] = [];
    await driver.listen('incumbent', (payload) => heard.push(payload), nothing);
    pool.clients[0]?.emit('notification', { channel: 'jobs', payload: 'x' });
    pool.clients[0]?.emit('notification', { channel: 'incumbent', payload: 'a' });
    pool.clients[0]?.emit('notification', { channel: 'incumbent' });
    expect(heard).toEqual(['a', '']);
  });
});
