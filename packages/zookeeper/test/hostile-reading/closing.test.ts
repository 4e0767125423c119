import { describe, expect, it } from 'vitest';
import { createClient } from '../../src/index.ts';
import { TestClock, until } from './clock.ts';
import { closeAfterEach } from './closing.ts';
import { ScriptedServer } from './scripted-server.ts';

const later = closeAfterEach();
const closeTimeoutMs = 800;

describe('close()', () => {
  it('sends nothing before the authentication is over', async () => {
    const server = later(
      await ScriptedServer.start({
        // The answer to the first token never comes.
        onRequest: (request, peer) => request.name !== 'sasl' && peer.answerUsual(request),
      }),
    );
    const clock = new TestClock();
    const sasl = { username: 'joe', password: 'secret' };
    const client = later(
      createClient(server.connectionString, { clock, sasl, closeTimeoutMs }),
      clock,
    );
    const create = client.create('/secret', 'x');
    const refused = expect(create).rejects.toMatchObject({ code: 'CLOSED' });
    await until('it begins to authenticate', () => server.names.includes('sasl'));
    const closed = client.close();
    await clock.runUntilSettled(closed);
    await refused;
    await until('the connection ends', () => server.peers[0]!.ended !== undefined);
    expect(server.names).toEqual(['sasl']);
  });

  it('inside a listener of `read-only` ends the search for a server with a quorum', async () => {
    const server = later(
      await ScriptedServer.start({ onConnect: (_, peer) => peer.accept({ readOnly: true }) }),
    );
    const clock = new TestClock();
    const client = later(createClient(server.connectionString, { clock, readOnly: true }), clock);
    let closed: Promise<void> | undefined;
    client.onState(({ state }) => {
      if (state === 'read-only') closed = client.close({ keepSession: true });
    });
    await until('it is read-only', () => closed !== undefined);
    await closed;
    await until('the connection ends', () => server.peers[0]!.ended !== undefined);
    expect(clock.timers).toBe(0);
    expect(server.peers).toHaveLength(1);
  });

  it('that hits its bound throws away nothing that was sent: the connection is not reset', async () => {
    const server = later(
      await ScriptedServer.start({
        onConnect: (_, peer) => {
          peer.accept();
          peer.socket.pause();
        },
      }),
    );
    const clock = new TestClock();
    const client = later(createClient(server.connectionString, { clock, closeTimeoutMs }), clock);
    await client.connected();
    await clock.runUntilSettled(client.close());
    const [peer] = server.peers;
    peer!.socket.resume();
    await until('the connection ends', () => peer!.ended !== undefined);
    expect(peer!.ended).toBe('FIN');
    expect(server.names).toEqual(['closeSession']);
  });
});
