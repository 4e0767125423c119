import dns from 'node:dns/promises';
import { getEventListeners } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Hosts } from '../src/session/hosts.ts';

type Answer = string[] | Error | 'nothing';

/** The addresses of names, until the end of the test. */
function resolveTo(names: Record<string, Answer>): Record<string, Answer> {
  vi.spyOn(dns, 'lookup').mockImplementation((async (name: string) => {
    const answer = names[name];
    if (answer === 'nothing') return new Promise(() => {});
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error(`no ${name}`);
    return answer.map((address) => ({ address, family: 4 }));
  }) as never);
  syncBuiltinESMExports();
  return names;
}

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

/** The largest number below 1 leaves a list in its order. */
const inOrder = () => 1 - Number.EPSILON;
const { signal: patience } = new AbortController();
const ignore = () => {};

describe('Hosts', () => {
  it('has the addresses at once when no name is among them', () => {
    const hosts = new Hosts(
      [
        { host: '127.0.0.1', port: 1 },
        { host: '::1', port: 2 },
      ],
      inOrder,
    );
    expect(hosts.count).toBe(2);
    expect(hosts.literal()).toEqual([
      { host: '127.0.0.1', port: 1, name: '127.0.0.1' },
      { host: '::1', port: 2, name: '::1' },
    ]);
    const named = [
      { host: '127.0.0.1', port: 1 },
      { host: 'zk', port: 2 },
    ];
    expect(new Hosts(named, inOrder).literal()).toBeUndefined();
  });

  it('shuffles: the first one is any of them', () => {
    const all = [1, 2, 3, 4].map((port) => ({ host: '127.0.0.1', port }));
    const given = JSON.stringify(all);
    const firsts = [0, 0.3, 0.6, 0.99].map(
      (random) => new Hosts(all, () => random).literal()![0]!.port,
    );
    expect(new Set(firsts).size).toBeGreaterThan(1);
    for (const random of [0, 0.3, 0.6, 0.99]) {
      const ports = new Hosts(all, () => random).literal()!.map(({ port }) => port);
      expect(ports.sort()).toEqual([1, 2, 3, 4]);
    }
    expect(JSON.stringify(all)).toBe(given);
  });

  it('takes all addresses of all names, each once, under the name that was given', async () => {
    resolveTo({ a: ['10.0.0.1', '10.0.0.2'], b: ['10.0.0.2'] });
    const hosts = new Hosts(
      [
        { host: 'a', port: 1 },
        { host: 'b', port: 1 },
        { host: 'b', port: 2 },
        { host: '10.0.0.9', port: 1 },
      ],
      inOrder,
    );
    const found = await hosts.resolve(patience, ignore);
    expect(found.map(({ host, port }) => `${host}:${port}`)).toEqual([
      '10.0.0.1:1',
      '10.0.0.2:1',
      '10.0.0.2:2',
      '10.0.0.9:1',
    ]);
    expect(found[0]!.name).toBe('a');
    expect(found[2]!.name).toBe('b');
  });

  it('resolves anew each time, and keeps what a name had while it cannot be resolved', async () => {
    const names = resolveTo({ a: ['10.0.0.1'] });
    const hosts = new Hosts([{ host: 'a', port: 1 }], inOrder);
    const resolve = async (onError: (error: Error) => void = ignore) =>
      (await hosts.resolve(patience, onError)).map(({ host }) => host);
    expect(await resolve()).toEqual(['10.0.0.1']);
    names['a'] = ['10.0.0.7'];
    expect(await resolve()).toEqual(['10.0.0.7']);
    names['a'] = new Error('out of order');
    const errors: Error[] = [];
    expect(await resolve((error) => errors.push(error))).toEqual(['10.0.0.7']);
    names['a'] = [];
    expect(await resolve((error) => errors.push(error))).toEqual(['10.0.0.7']);
    expect(errors.map(({ message }) => message)).toEqual(['out of order']);
  });

  it('waits no longer than its bound for a name, and goes on with the others', async () => {
    resolveTo({ slow: 'nothing', quick: ['10.0.0.1'] });
    const hosts = new Hosts(
      [
        { host: 'slow', port: 1 },
        { host: 'quick', port: 1 },
      ],
      inOrder,
    );
    const bound = new AbortController();
    const errors: Error[] = [];
    const found = hosts.resolve(bound.signal, (error) => errors.push(error));
    bound.abort();
    expect((await found).map(({ name }) => name)).toEqual(['quick']);
    expect(errors.map(({ message }) => message)).toEqual(['slow could not be resolved in time']);
    // Also if the time was over before.
    expect((await hosts.resolve(bound.signal, ignore)).map(({ name }) => name)).toEqual(['quick']);
  });

  it('waits for a name as long as it may, and leaves nothing on the bound', async () => {
    const { signal } = new AbortController();
    vi.spyOn(dns, 'lookup').mockImplementation((async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return [{ address: '10.0.0.1', family: 4 }];
    }) as never);
    syncBuiltinESMExports();
    const errors: Error[] = [];
    const hosts = new Hosts([{ host: 'a', port: 1 }], inOrder);
    const found = hosts.resolve(signal, (error) => errors.push(error));
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    expect(await found).toEqual([{ host: '10.0.0.1', port: 1, name: 'a' }]);
    expect(errors).toEqual([]);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('is the order of the draw: each place gets any of those up to it, the last place first', () => {
    const all = [1, 2, 3, 4].map((port) => ({ host: '127.0.0.1', port }));
    const drawn = (...numbers: number[]) =>
      new Hosts(all, () => numbers.shift() as number).literal()!.map(({ port }) => port);
    expect(drawn(0, 0, 0)).toEqual([2, 3, 4, 1]);
    expect(drawn(0.99, 0.4, 0)).toEqual([3, 1, 2, 4]);
    expect(drawn(0.26, 0.99, 0.51)).toEqual([1, 4, 3, 2]);
  });
});
