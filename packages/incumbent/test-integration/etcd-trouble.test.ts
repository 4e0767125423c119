import { channel } from 'node:diagnostics_channel';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChannelCredentials } from '@grpc/grpc-js';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { startEtcd } from '@incumbent/servers';
import type { TestCertificates } from '@incumbent/zookeeper-testing';
import { createCertificates } from '@incumbent/zookeeper-testing';
import { describe, it } from 'vitest';
import type { EtcdOptions } from '../src/backends/etcd/index.ts';
import { etcd } from '../src/backends/etcd/index.ts';
import type { Election } from '../src/index.ts';
import { createElection, StoreUnsuitableError } from '../src/index.ts';
import { aborted, end, leaseIn, missing, until, useEtcd, waiting } from './support/etcd.ts';

type OnTestFinished = (cleanUp: () => Promise<void>) => void;

/** An election on a server that was started for one test. */
function electionOn(
  onTestFinished: OnTestFinished,
  endpoint: string,
  options: EtcdOptions,
  by: ChannelCredentials = credentials.createInsecure(),
): Election<unknown> {
  const client = new Client(endpoint, by, { 'grpc.use_local_subchannel_pool': 1 });
  const backend = etcd(client, { ttl: '15s', electionTimeout: 100, ...options });
  const election = createElection({ name: 'jobs', backend, candidate: { id: 'a' } });
  onTestFinished(async () => {
    await election.close();
    client.close();
  });
  return election;
}

describe.skipIf(missing !== undefined)('when something is wrong', () => {
  // They mostly wait: all at once, but those that share a server.
  describe.concurrent('with etcd', () => {
    describe.sequential('that stands still', () => {
      const servers = useEtcd();

      it('gives its leases back with the last handle', async ({ expect, onTestFinished }) => {
        const stand = servers.scene(onTestFinished);
        const leases = async () => (await stand.server.etcdctl('lease', 'list')).split('\n')[0];
        expect(await leases()).toBe('found 0 leases');
        const backend = stand.backend();
        const a = stand.election(backend, 'a');
        const b = stand.election(backend, 'b', { name: `${stand.name}-other` });
        await end(await a.campaign());
        await end(await b.campaign());
        expect(await leases()).toBe('found 1 leases');
        await a.close();
        expect(await leases()).toBe('found 1 leases');
        await b.close();
        await until('it is given back', async () => (await leases()) === 'found 0 leases');
      });

      it('survives a server that is frozen for a moment, and its restart', async ({
        expect,
        onTestFinished,
      }) => {
        const stand = servers.scene(onTestFinished);
        const election = stand.election(stand.backend(undefined, { ttl: 20_000 }), 'a');
        const term = await election.campaign();
        await stand.server.freeze();
        await new Promise((resolve) => setTimeout(resolve, 300));
        stand.server.thaw();
        await stand.server.kill();
        await stand.server.start();
        const key = `incumbent/record/${stand.name}`;
        await term.proclaim({ addresses: ['10.0.0.1:1'] });
        expect(await stand.server.etcdctl('get', key)).toContain('10.0.0.1:1');
        expect(term.isLeading()).toBe(true);
        await end(term);
      });

      it('tells an observer that no server answers, and the leader when one does', async ({
        onTestFinished,
      }) => {
        const stand = servers.scene(onTestFinished);
        const term = await stand
          .election(stand.backend(undefined, { ttl: 20_000 }), 'a')
          .campaign();
        const stop = new AbortController();
        const states: string[] = [];
        const observing = (async () => {
          const { signal } = stop;
          for await (const view of stand.election(stand.backend(), 'b').observe({ signal })) {
            states.push(view.state);
          }
        })();
        await until('it sees a leader', () => states.at(-1) === 'led');
        await stand.server.kill();
        await until('it knows that it knows nothing', () => states.at(-1) === 'unknown');
        await stand.server.start();
        await until('it sees the leader again', () => states.at(-1) === 'led');
        stop.abort();
        await observing;
        await end(term);
      });

      it('gives up in time when the server stands still, and no call hangs', async ({
        expect,
        onTestFinished,
      }) => {
        const stand = servers.scene(onTestFinished);
        const election = stand.election(stand.backend(), 'a');
        const term = await election.campaign();
        await stand.server.freeze();
        try {
          await aborted(term.signal);
          const outcome = await end(term);
          expect(outcome.reason).toMatch(/renewal-failed|session-expired/);
          expect(outcome.released).toBe(false);
          await expect(election.leader()).rejects.toMatchObject({ retryable: true });
        } finally {
          stand.server.thaw();
        }
        await end(await election.campaign());
      });
    });

    it('names the user and the missing right, and gets another token when a server has forgotten it', async ({
      expect,
      onTestFinished,
    }) => {
      const server = await startEtcd();
      onTestFinished(() => server.close());
      for (const words of [
        ['user', 'add', 'root:secret'],
        ['user', 'grant-role', 'root', 'root'],
        ['role', 'add', 'jobs'],
        ['role', 'grant-permission', 'jobs', '--prefix=true', 'readwrite', 'jobs/'],
        ['role', 'add', 'records'],
        ['role', 'grant-permission', 'records', 'readwrite', 'incumbent/record/jobs'],
        ['user', 'add', 'joe:pass'],
        ['user', 'grant-role', 'joe', 'jobs'],
        ['user', 'grant-role', 'joe', 'records'],
        ['user', 'add', 'eve:pass'],
        ['user', 'grant-role', 'eve', 'jobs'],
        ['auth', 'enable'],
      ]) {
        await server.etcdctl(...words);
      }
      const as = (user: string, password: string) =>
        electionOn(onTestFinished, server.endpoint, { auth: { user, password, Metadata } });
      const refused = async (election: Election<unknown>, why: string) => {
        const campaign = election.campaign();
        await expect(campaign).rejects.toThrow(StoreUnsuitableError);
        await expect(campaign).rejects.toThrow(why);
      };
      await refused(electionOn(onTestFinished, server.endpoint, {}), 'give `auth` to etcd()');
      await refused(as('joe', 'wrong'), 'authentication failed');
      await refused(as('eve', 'pass'), 'permission denied');
      const joe = as('joe', 'pass');
      const term = await joe.campaign();
      // Simple tokens are in the memory of the server.
      await server.kill();
      await server.start();
      await term.proclaim({ addresses: ['10.0.0.1:1'] });
      expect(term.isLeading()).toBe(true);
      await server.etcdctl('--user=root:secret', 'user', 'revoke-role', 'joe', 'jobs');
      await aborted(term.signal);
      expect((await end(term as never)).released).toBe(false);
      await refused(joe, 'permission denied');
    });

    it('does without users where the cluster does, whatever it was told', async ({
      expect,
      onTestFinished,
    }) => {
      const server = await startEtcd();
      onTestFinished(() => server.close());
      const auth = { user: 'joe', password: 'pass', Metadata };
      const term = await electionOn(onTestFinished, server.endpoint, { auth }).campaign();
      expect(term.isLeading()).toBe(true);
      await end(term as never);
    });

    it('goes on when the cluster begins to know users', async ({ expect, onTestFinished }) => {
      const server = await startEtcd();
      onTestFinished(() => server.close());
      for (const words of [
        ['user', 'add', 'root:secret'],
        ['user', 'grant-role', 'root', 'root'],
        ['user', 'add', 'joe:pass'],
        ['role', 'add', 'all'],
        ['role', 'grant-permission', 'all', '--prefix=true', 'readwrite', ''],
        ['user', 'grant-role', 'joe', 'all'],
      ]) {
        await server.etcdctl(...words);
      }
      const auth = { user: 'joe', password: 'pass', Metadata };
      const term = await electionOn(onTestFinished, server.endpoint, { auth }).campaign();
      const follower = waiting(electionOn(onTestFinished, server.endpoint, { auth }) as never);
      await until('it follows', () => follower.following.length > 0);
      await server.etcdctl('auth', 'enable');
      await term.proclaim({ addresses: ['10.0.0.1:1'] });
      expect(term.isLeading()).toBe(true);
      expect((await end(term as never)).released).toBe(true);
      const next = await follower.won;
      expect(next.token).toBeGreaterThan(term.token);
      await end(next);
    });

    it('names the fault of TLS, and speaks it', async ({ expect, onTestFinished }) => {
      const server = await startEtcd({ tls: 'require' });
      onTestFinished(() => server.close());
      const directory = await mkdtemp(join(tmpdir(), 'incumbent-tls-'));
      onTestFinished(() => rm(directory, { recursive: true, force: true }));
      const secure = `localhost:${server.port}`;
      const right = server.certificates as TestCertificates;
      const wrong = await createCertificates(directory);
      const tls = ({ ca }: TestCertificates, { client }: TestCertificates) =>
        credentials.createSsl(
          Buffer.from(ca.text),
          Buffer.from(client.key.text),
          Buffer.from(client.certificate.text),
        );
      for (const by of [tls(wrong, right), tls(right, wrong)]) {
        const campaign = electionOn(onTestFinished, secure, {}, by).campaign();
        await expect(campaign).rejects.toThrow(StoreUnsuitableError);
        await expect(campaign).rejects.toThrow('no TLS connection');
      }
      // A server that hangs up in the middle of a handshake may have other reasons.
      const insecure = electionOn(onTestFinished, server.endpoint, {});
      await expect(insecure.leader()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      const term = await electionOn(onTestFinished, secure, {}, tls(right, right)).campaign();
      expect(term.isLeading()).toBe(true);
      await end(term as never);
    });

    it('says that a server has raised the TTL, and keeps the lease as granted', async ({
      expect,
      onTestFinished,
    }) => {
      // etcd's own timing: no lease below 2 s.
      const server = await startEtcd({ timing: { heartbeatMs: 100, electionMs: 1_000 } });
      onTestFinished(() => server.close());
      const troubles: string[] = [];
      const note = (message: unknown) => {
        troubles.push(String((message as { error: unknown }).error));
      };
      channel('incumbent:trouble').subscribe(note);
      onTestFinished(async () => void channel('incumbent:trouble').unsubscribe(note));
      const election = electionOn(onTestFinished, server.endpoint, { ttl: '1s' });
      expect(election.timing.leaseMs).toBe(1_000);
      const term = await election.campaign();
      expect(troubles.join()).toContain('raised the TTL of 1000 ms to 2000 ms');
      const { key } = term.guard as { key: string };
      const lease = await server.etcdctl('lease', 'timetolive', leaseIn(key));
      expect(lease).toContain('granted with TTL(2s)');
      await end(term as never);
    });
  });
});
