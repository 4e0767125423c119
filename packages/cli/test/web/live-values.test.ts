import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LiveValues } from '../../src/web/live-values.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** The connection of a browser, as far as it matters here. */
class Connection extends EventEmitter {
  readonly told: unknown[] = [];
  readonly socket: object | null;
  isSlow = false;
  isDestroyed = false;
  writable = true;
  constructor(socket: object | null = {}) {
    super();
    this.socket = socket;
  }
  writeHead(): void {}
  destroy(): void {
    this.isDestroyed = true;
    this.emit('close');
  }
  write(given: string | Buffer): boolean {
    const text = String(given);
    if (text.startsWith('data: ')) this.told.push(JSON.parse(text.slice('data: '.length)));
    return !this.isSlow;
  }
  end(): void {
    this.writable = false;
  }
}

function open(live: LiveValues): Connection {
  const connection = new Connection();
  live.stream(connection as unknown as ServerResponse);
  return connection;
}

test('a browser hears all values first, and then those that change, in one event a frame', () => {
  const live = new LiveValues();
  live.set('a', 1);
  live.set('b', { token: 2n ** 63n });
  const browser = open(live);
  expect(browser.told).toEqual([
    [
      ['a', 1],
      ['b', { token: '9223372036854775808' }],
    ],
  ]);
  live.set('a', 2);
  live.set('a', 3);
  live.delete('b');
  vi.advanceTimersByTime(100);
  expect(browser.told.slice(1)).toEqual([[['a', 3], ['b']]]);
});

test('a value that is set again as it was is not told', () => {
  const live = new LiveValues();
  live.set('a', { x: 1 });
  const browser = open(live);
  live.set('a', { x: 1 });
  live.delete('unknown');
  vi.advanceTimersByTime(1_000);
  expect(browser.told).toHaveLength(1);
});

test('for a browser that does not read, only the newest of each name waits', () => {
  const live = new LiveValues();
  live.set('a', 0);
  const browser = open(live);
  browser.isSlow = true;
  live.set('a', 1);
  vi.advanceTimersByTime(100);
  for (let value = 2; value <= 100; value += 1) {
    live.set('a', value);
    vi.advanceTimersByTime(100);
  }
  expect(browser.told).toEqual([[['a', 0]], [['a', 1]]]);
  browser.isSlow = false;
  browser.emit('drain');
  vi.advanceTimersByTime(100);
  expect(browser.told.slice(2)).toEqual([[['a', 100]]]);
});

test('a browser that has gone costs nothing any more', () => {
  const live = new LiveValues();
  const browser = open(live);
  const other = open(live);
  browser.emit('close');
  expect(live.browsers).toBe(1);
  live.set('a', 1);
  vi.advanceTimersByTime(100);
  expect(browser.told).toHaveLength(1);
  expect(other.told).toHaveLength(2);
  other.emit('close');
  expect(vi.getTimerCount()).toBe(0);
});

test('a change that comes while the browser is full waits, and is not lost', () => {
  const live = new LiveValues();
  const browser = open(live);
  vi.advanceTimersByTime(9_950);
  live.set('a', 1);
  browser.isSlow = true;
  // The beat is what fills it, before the frame is due.
  vi.advanceTimersByTime(1_000);
  browser.isSlow = false;
  browser.emit('drain');
  vi.advanceTimersByTime(100);
  expect(browser.told.at(-1)).toEqual([['a', 1]]);
});

test('a browser that takes nothing for three beats is let go, with all that waits for it', () => {
  const live = new LiveValues();
  const browser = open(live);
  browser.isSlow = true;
  live.set('a', 1);
  vi.advanceTimersByTime(25_000);
  expect(browser.isDestroyed).toBe(false);
  vi.advanceTimersByTime(10_000);
  expect(browser.isDestroyed).toBe(true);
  expect(live.browsers).toBe(0);
});

test('a hundred browsers are told, and no more; nor is one that waits behind another answer', () => {
  const live = new LiveValues();
  const stream = (connection: Connection) => live.stream(connection as unknown as ServerResponse);
  expect(stream(new Connection(null))).toBe(false);
  const browsers = Array.from({ length: 100 }, () => new Connection());
  expect(browsers.map(stream)).not.toContain(false);
  expect(stream(new Connection())).toBe(false);
  browsers[0]!.emit('close');
  expect(stream(new Connection())).toBe(true);
});
