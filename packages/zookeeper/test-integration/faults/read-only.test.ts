import { startEnsemble } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import { needServers, scoped } from '../support/scope.ts';
import { nextState, refusal, settling, until } from '../support/waiting.ts';

describe('a server without a quorum that reads', () => {
  needServers();

  it(
    'is used only by who asks for it, refuses writes, and is left for a quorum that is back',
    scoped(async (scope) => {
      const ensemble = scope.later(
        await startEnsemble(3, { readOnlyMode: true, localSessions: true }),
      );
      const url = ensemble.connectionString;
      const options = { sessionTimeoutMs: 30_000 };
      const strict = await scope.connect(url, options);
      await strict.create('/node', 'before');
      const [one, ...others] = ensemble.members;
      for (const member of ensemble.members) {
        const reader = await scope.connect(member.connectionString, options);
        await reader.sync('/');
      }
      await Promise.all(others.map((member) => member.kill()));
      await until('it is read-only', async () => {
        return (await one!.fourLetterWord('isro').catch(() => '')) === 'ro';
      });

      const client = await scope.connect(url, { ...options, readOnly: true });
      expect(client.state).toBe('read-only');
      expect(client.session).toMatchObject({ readOnly: true });
      const watch = await client.watch('/node');
      expect(watch.value?.text).toBe('before');
      const write = await refusal(client.set('/node', 'without a quorum'));
      expect(write).toMatchObject({ code: 'NOT_READ_ONLY', retryable: true });

      // A client without the option never attaches to such a server, with a session or without.
      const fresh = scope.create(url, { ...options, requestTimeoutMs: 60_000 });
      const get = settling(fresh.get('/node'));
      await until('it is asked', () => fresh.counters.attempts >= 6);
      expect(fresh.state).toBe('connecting');
      const { attempts } = strict.counters;
      await until('it is asked', () => strict.counters.attempts >= attempts + 6);
      expect(strict.state).toBe('suspended');

      const connected = nextState(client, 'connected');
      await Promise.all(others.map((member) => member.restart()));
      await ensemble.waitForQuorum();
      await connected;
      expect(client.session).toMatchObject({ readOnly: false });
      await client.set('/node', 'after');
      expect((await get).error).toBeUndefined();
      await strict.connected({ timeoutMs: 30_000 });
      await strict.sync('/');
      expect((await strict.get('/node')).text).toBe('after');
    }),
  );
});
