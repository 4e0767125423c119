import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { TestMember } from '../src/index.ts';
import { startEnsemble } from '../src/index.ts';
import { BareSession, closing, needServers, until } from './server-support.ts';

const open = closing();

describe('an ensemble', () => {
  needServers();

  it('has a leader, replaces it when it is killed or frozen, and loses its quorum', async () => {
    const ensemble = open(await startEnsemble(3));
    const { members } = ensemble;
    expect(members.map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(ensemble.connectionString).toBe(
      `zk://${members.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    );
    const first = await ensemble.leader();
    expect((await ensemble.followers()).length).toBe(2);
    await open(await BareSession.open(first)).create('/node', 'of the first leader');

    await first.kill();
    await ensemble.waitForQuorum();
    const second = await ensemble.leader();
    expect(second).not.toBe(first);
    expect(await open(await BareSession.open(second)).get('/node')).toBe('of the first leader');
    await first.restart();
    await ensemble.waitForQuorum({ atLeast: 3 });

    await second.freeze();
    const third = await ensemble.leader();
    expect(third).not.toBe(second);
    second.thaw();
    await ensemble.waitForQuorum({ atLeast: 3 });
    expect(await ensemble.leader()).toBe(third);

    const [follower, other] = await ensemble.followers();
    await Promise.all([follower!.kill(), other!.stop()]);
    await until('the leader stops serving', async () => {
      const answer = await third.fourLetterWord('srvr');
      return answer.includes('not currently serving');
    });
    await expect(ensemble.leader({ timeoutMs: 100 })).rejects.toMatchObject({ code: 'TIMED_OUT' });

    // Alone it can answer, but not serve. A second one makes a majority.
    await third.kill();
    await third.restart({ until: 'answering' });
    expect(await third.fourLetterWord('srvr')).toContain('not currently serving');
    await other!.restart();
    await ensemble.waitForQuorum();
    const last = await ensemble.leader();
    expect(await open(await BareSession.open(last)).get('/node')).toBe('of the first leader');
  });

  it('keeps serving while its members restart one after the other', async () => {
    const ensemble = open(await startEnsemble(3));
    const pids = ensemble.members.map(({ pid }) => pid);
    await ensemble.rollingRestart();
    expect(ensemble.members.filter(({ pid }) => pids.includes(pid))).toEqual([]);
    await ensemble.waitForQuorum({ atLeast: 3, timeoutMs: 1 });
  });

  it('serves reads without a quorum in read-only mode', async () => {
    const ensemble = open(await startEnsemble(3, { readOnlyMode: true, localSessions: true }));
    const [one, two, three] = ensemble.members as [TestMember, TestMember, TestMember];
    expect(await one.fourLetterWord('isro')).toBe('rw');
    await open(await BareSession.open(one)).create('/node', 'before');
    await Promise.all([two.kill(), three.kill()]);
    await until('the last one is read-only', async () => {
      return (await one.fourLetterWord('isro').catch(() => '')) === 'ro';
    });
    expect(await one.fourLetterWord('srvr')).toContain('Mode: read-only');
    await expect(BareSession.open(one)).rejects.toThrow();
    const reader = open(await BareSession.open(one, { readOnly: true }));
    expect(reader.session?.readOnly).toBe(true);
    expect(await reader.get('/node')).toBe('before');
    await expect(ensemble.waitForQuorum({ timeoutMs: 100 })).rejects.toThrow(/a leader, and 2/);
    await two.restart();
    await ensemble.waitForQuorum();
  });

  it('lets a member join through reconfig, and keeps it over a restart', async () => {
    const ensemble = open(await startEnsemble(3, { reconfiguration: true }));
    const added = await ensemble.addMember();
    expect(added.id).toBe(4);
    const leader = await ensemble.leader();
    const session = open(await BareSession.open(leader));
    expect(await session.get('/zookeeper/config')).not.toContain(`:${added.port}`);
    await session.join(added.configurationLine);
    expect(await session.get('/zookeeper/config')).toContain(added.configurationLine);
    await ensemble.waitForQuorum({ atLeast: 4 });
    await added.restart();
    await ensemble.waitForQuorum({ atLeast: 4 });
    expect((await ensemble.followers()).length).toBe(3);
  });

  it('has TLS on all members, with one authority', async () => {
    const ensemble = open(await startEnsemble(3, { tls: { clientAuth: 'none' } }));
    const ca = ensemble.certificates!.ca.text;
    const secure = ensemble.members.map(({ host, securePort }) => ({ host, port: securePort! }));
    expect(ensemble.secureConnectionString).toBe(
      `zks://${secure.map(({ host, port }) => `${host}:${port}`).join(',')}`,
    );
    for (const target of secure) open(await BareSession.open(target, { tls: { ca } }));
  });

  it('puts its members where they are told to be', async ({ skip }) => {
    if (process.platform !== 'linux') skip('elsewhere 127.0.0.2 has to be set up first');
    const seats = [1, 2, 3].map((id) => ({
      host: `127.0.0.${id}`,
      command: ['env', `SEAT=${id}`],
    }));
    const ensemble = open(await startEnsemble(3, { seats }));
    for (const [index, { host, port, pid, peerPorts, configurationLine }] of [
      ...ensemble.members.entries(),
    ]) {
      expect(host).toBe(seats[index]!.host);
      expect(configurationLine).toBe(
        `server.${index + 1}=${host}:${peerPorts.quorum}:${peerPorts.election}:participant;${host}:${port}`,
      );
      // The process of the wrapper has become the server.
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')).toContain(
        `SEAT=${index + 1}`,
      );
      expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain('QuorumPeerMain');
    }
  });

  it('refuses a malformed size, and members without reconfiguration', async () => {
    await expect(startEnsemble(0)).rejects.toThrow(TypeError);
    await expect(startEnsemble(2.5)).rejects.toThrow('1 to 9 members, not 2.5');
    const seats = [{ host: '127.0.0.1' }];
    await expect(startEnsemble(3, { seats })).rejects.toThrow(
      '3 members need as many seats, not 1',
    );
    const ensemble = open(await startEnsemble(1));
    expect(await ensemble.members[0]!.fourLetterWord('srvr')).toContain('Mode: leader');
    await expect(ensemble.addMember()).rejects.toThrow('reconfiguration');
  });
});
