import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConnectError, createClient, InvalidArgumentError } from '../../src/index.ts';
import { TestClock } from './clock.ts';
import { closeAfterEach } from './closing.ts';

const later = closeAfterEach();
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

describe('keys and certificates', () => {
  it.each([[{ cert: 'not pem', key: 'x' }], [{ cert: 'not pem' }], [{ key: 'not pem' }]])(
    'that cannot be used are refused before anything is opened: %o',
    (tls) => {
      const make = () => createClient('zks://127.0.0.1:1', { tls });
      expect(make).toThrow(InvalidArgumentError);
      expect(make).toThrow(/tls.*ca, cert or key/);
    },
  );
});

describe('the name that a server must have', () => {
  it.each([[7], ['']])('is refused when it is malformed: %o', (servername) => {
    // biome-ignore lint/suspicious/noExplicitAny: bad input is what the types forbid
    const tls = { servername } as any;
    expect(() => createClient('zks://127.0.0.1:1', { tls })).toThrow(/tls\.servername/);
  });
});

describe('a socket that cannot even be made', () => {
  it('is a failed attempt, and not the end of the process', async () => {
    const reason = new Error('no more sockets');
    vi.spyOn(net, 'connect').mockImplementation(() => {
      throw reason;
    });
    syncBuiltinESMExports();
    const clock = new TestClock();
    const client = later(createClient('zk://127.0.0.1:1', { clock }), clock);
    const failed = clock.runUntilSettled(client.connected({ timeoutMs: 500 }));
    await expect(failed).rejects.toBeInstanceOf(ConnectError);
    await expect(failed).rejects.toMatchObject({ cause: reason });
    expect(client.counters.attempts).toBeGreaterThan(1);
  });
});
