import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificates, ServerUnavailableError } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import { createClient } from '../../src/index.ts';
import { TestClock, until } from '../../test/hostile-reading/clock.ts';
import { closeAfterEach } from '../../test/hostile-reading/closing.ts';
import { ScriptedServer } from '../../test/hostile-reading/scripted-server.ts';

const later = closeAfterEach();
const timeoutMs = 9_000;

describe('an expiry with TLS', () => {
  it('resets the connection below it: what was not sent yet never arrives', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'zookeeper-tls-reset-'));
    later({
      [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
    });
    const certificates = await createCertificates(folder).catch((error: unknown) => {
      if (!(error instanceof ServerUnavailableError) || process.env['CI'] === 'true') throw error;
      return context.skip(error.message);
    });
    const { key, certificate } = certificates.server;
    const server = later(
      await ScriptedServer.start(
        {
          onConnect: (_, peer) => {
            peer.accept({ timeoutMs });
            peer.socket.pause();
          },
        },
        { key: key.text, cert: certificate.text },
      ),
    );
    const clock = new TestClock();
    const url = `zks://127.0.0.1:${server.port}`;
    const client = later(createClient(url, { clock, tls: { ca: certificates.ca.text } }), clock);
    await client.connected();
    const data = new Uint8Array(900_000);
    const calls = Array.from({ length: 12 }, () => client.set('/a', data));
    const outcomes = Promise.allSettled(calls);
    await until('much was sent', () => client.counters.bytesSent > 1_500_000);
    clock.stall(0.96 * timeoutMs);
    expect(client.state).toBe('expired');
    await outcomes;
    const [peer] = server.peers;
    peer!.socket.resume();
    await until('the connection ends', () => peer!.ended !== undefined);
    // A reset behind bytes may look like an end to TLS. After a real end all of the bytes would be
    // here.
    expect(peer!.bytesReceived).toBeLessThan(12 * data.length);
  });
});
