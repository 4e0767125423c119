// The command `incumbent-redis` as processes, on real ZooKeeper and Redis servers.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProxy } from '@incumbent/zookeeper-testing';
import { describe, expect, test } from 'vitest';
import { addressOf, RedisSet } from '../../../redis-failover/test-integration/support/redis-set.ts';
import { missing, useZooKeeper } from '../../../redis-failover/test-integration/support/servers.ts';
import { lasting, until } from '../../../redis-failover/test-integration/support/waiting.ts';
import type { Result } from './program.ts';
import { Command, incumbentRedis, jsonLines } from './program.ts';

const zookeeper = useZooKeeper();
let roots = 0;

/** One set of servers, and the options that every command gets for it. */
class Place {
  readonly where: readonly string[];
  readonly nodes: readonly string[];

  constructor(set: RedisSet, connectionString = zookeeper.server.connectionString) {
    roots += 1;
    this.where = ['-z', connectionString, '--root', `/redis_failover_${roots}`];
    this.nodes = ['-n', set.addresses.join(',')];
  }

  manage(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Command {
    const listen = ['--listen', '127.0.0.1:0'];
    return new Command(['manage', ...this.where, ...this.nodes, ...listen, ...args], env);
  }

  run(name: string, ...args: string[]): Promise<Result> {
    return incumbentRedis([name, ...this.where, ...args]);
  }
}

interface Ready {
  readonly http: number;
  readonly ready: boolean;
  readonly code?: string;
  readonly message?: string;
  readonly primary: string | null;
  readonly term: number | null;
}

async function readyz(manager: Command): Promise<Ready> {
  const { listen } = await manager.line({ event: 'begun' });
  const response = await fetch(`${listen}/readyz`);
  return { http: response.status, ...((await response.json()) as Omit<Ready, 'http'>) };
}

/**
 * Resolves when /readyz answers with that code; undefined: when it answers that the manager is
 * ready.
 */
function whenReady(manager: Command, code?: string): Promise<Ready> {
  return manager.until(`/readyz says ${code ?? 'ready'}`, async () => {
    const now = await readyz(manager);
    if (now.code === code && now.http === (code === undefined ? 200 : 503)) return now;
    // Asking more often would take the processor from the manager that is waited for.
    await lasting(100);
    return undefined;
  });
}

async function metric(manager: Command, sample: string): Promise<string | undefined> {
  const { listen } = await manager.line({ event: 'begun' });
  const text = await (await fetch(`${listen}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`incumbent_redis_${sample} `));
  return line?.split(' ').at(-1);
}

describe
  .skipIf(missing !== undefined)
  .concurrent(`incumbent-redis${missing ? `: ${missing}` : ''}`, () => {
    test('manage, status, failover, watch, and a clean end', async () => {
      await using set = await RedisSet.start();
      const [first, second] = set.addresses as [string, string, string];
      const place = new Place(set);

      const nobody = await place.run('status');
      expect(nobody.code).toBe(1);
      expect(nobody.stdout).toContain('no manager has kept anything here');

      await using watch = new Command(['watch', ...place.where, '--json']);
      await watch.line({ change: 'leader', manager: null });
      await using one = place.manage(['--id', 'one']);
      await one.line({ event: 'elected' });
      await using two = place.manage(['--id', 'two']);
      await whenReady(one);
      await whenReady(two);
      expect(await readyz(one)).toMatchObject({ primary: first, term: 1 });
      expect(await metric(one, 'leading')).toBe('1');
      expect(await metric(two, 'leading')).toBe('0');

      const healthy = await until('all is well', async () => {
        const result = await place.run('status', '--json');
        const status = jsonLines(result.stdout)[0] as { managers: unknown[] };
        return result.code === 0 && status.managers.length === 2 && status;
      });
      expect(healthy).toMatchObject({
        healthy: true,
        problems: [],
        primary: first,
        term: 1,
        leader: { id: 'one' },
        managers: [
          { id: 'one', leading: true },
          { id: 'two', leading: false },
        ],
      });
      const forPeople = await place.run('status');
      expect(forPeople).toMatchObject({ code: 0, stderr: '' });
      expect(forPeople.stdout).toMatch(new RegExp(`^${first}\\s+primary\\s+primary`, 'm'));
      expect(forPeople.stdout).toMatch(new RegExp(`^${second}\\s+replica\\s+replica`, 'm'));

      const unknown = await place.run('failover', '127.0.0.1:1');
      expect(unknown.code).toBe(1);
      expect(unknown.stderr).toContain('127.0.0.1:1 is none of the nodes here: ');
      for (const address of set.addresses) expect(unknown.stderr).toContain(address);
      const already = await place.run('failover', first);
      expect(already.code).toBe(1);
      expect(already.stderr).toContain(`${first} is the primary already (term 1)`);

      const moved = await place.run('failover', second, '--json');
      expect(moved).toMatchObject({ code: 0, stderr: '' });
      expect(jsonLines(moved.stdout)).toMatchObject([{ primary: second, former: first, term: 2 }]);
      await one.line({ event: 'moved', reason: 'request', from: first, to: second });
      expect(await metric(one, 'failovers_total{outcome="done",reason="request"}')).toBe('1');
      await until('all follow it', async () => (await set.formation(second)) === 'formed');
      await watch.line({ change: 'primary', primary: second, term: 2 });

      await set.at(second).kill();
      const { to, term } = await one.line({ event: 'moved', reason: 'down' });
      expect(term).toBe(3);
      await watch.line({ change: 'node', node: second, down: true });
      const degraded = await place.run('status', '--json');
      expect(degraded.code).toBe(1);
      expect(jsonLines(degraded.stdout)).toMatchObject([
        { healthy: false, primary: to, term: 3, problems: [{ code: 'NODE_DOWN', node: second }] },
      ]);

      one.signal('SIGHUP');
      await one.line({ event: 'ignored' });
      one.signal('SIGTERM');
      expect(await one.result).toMatchObject({ code: 0, stderr: '' });
      expect(one.lines.at(-1)).toMatchObject({ event: 'stopped' });
      // The manager resigned. Otherwise its session would have had to end first.
      await two.line({ event: 'elected' });
      await watch.line({ change: 'manager', manager: 'one', reports: false });
      watch.signal('SIGINT');
      expect(await watch.result).toMatchObject({ code: 130, stderr: '' });
    });

    test('no manager: a failover says so at once', async () => {
      await using set = await RedisSet.start({ replicas: 0 });
      const { code, stderr } = await new Place(set).run('failover');
      expect(code).toBe(1);
      expect(stderr).toContain('no manager runs with the root');
    });

    test('a password: wrong, right, from a file, and never in what is written', async () => {
      await using set = await RedisSet.start({ replicas: 1, password: 'right-s3cret' });
      const place = new Place(set);
      const directory = await mkdtemp(join(tmpdir(), 'incumbent-redis-'));
      try {
        const file = join(directory, 'password');
        await writeFile(file, 'right-s3cret\n', { mode: 0o600 });
        const config = join(directory, 'config.yml');
        const [, connectionString, , root] = place.where;
        await writeFile(
          config,
          `production:\n  zookeeper: ${connectionString}\n  root: ${root}\n  password_file: ${file}\n` +
            `  nodes:\n${set.addresses.map((address) => `    - ${address}\n`).join('')}`,
        );
        await using wrong = place.manage([], { INCUMBENT_REDIS_PASSWORD: 'wrong-s3cret' });
        const trouble = await whenReady(wrong, 'NODE_REFUSED');
        expect(trouble.message).toContain('the user name or the password is wrong');
        wrong.signal('SIGTERM');
        const ended = await wrong.result;
        expect(ended.code).toBe(0);

        const section = ['-C', config, '-E', 'production'];
        await using right = new Command(['manage', ...section, '--listen', '127.0.0.1:0']);
        await whenReady(right);
        const env = { INCUMBENT_REDIS_PASSWORD: 'wrong-s3cret' };
        const refused = await incumbentRedis(['status', ...place.where], env);
        expect(refused.code).toBe(1);
        expect(refused.stdout).toContain('refuses us');
        const healthy = await until('all is well', async () => {
          const result = await incumbentRedis(['status', ...section]);
          return result.code === 0 && result;
        });
        const watched = `${ended.stdout}${right.stdout}${refused.stdout}${healthy.stdout}`;
        expect(watched).not.toContain('s3cret');
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    });

    test('no primary: nothing is done, and why', async () => {
      await using set = await RedisSet.start({ replicas: 1 });
      const [first, second] = set.servers;
      await first?.command('REPLICAOF', '127.0.0.1', second?.port ?? 0);
      const place = new Place(set);
      await using manager = place.manage();
      const { message } = await whenReady(manager, 'NO_PRIMARY');
      expect(message).toContain('REPLICAOF NO ONE');
      const { code, stdout } = await place.run('status');
      expect(code).toBe(1);
      expect(stdout).toContain('no primary has been found yet');
      expect(Object.values(await set.roles())).toEqual(['replica', 'replica']);
      await first?.promote();
      await whenReady(manager);
    });

    test('two primaries: nothing is done, and which', async () => {
      await using set = await RedisSet.start({ replicas: 1 });
      const [first, second] = set.servers;
      await second?.promote();
      const place = new Place(set);
      await using manager = place.manage();
      const { message } = await whenReady(manager, 'MULTIPLE_PRIMARIES');
      for (const address of set.addresses) expect(message).toContain(address);
      const { code, stdout } = await place.run('status');
      expect(code).toBe(1);
      for (const address of set.addresses) expect(stdout).toContain(`! ${address} is a primary`);
      expect(Object.values(await set.roles())).toEqual(['primary', 'primary']);
      await second?.command('REPLICAOF', '127.0.0.1', first?.port ?? 0);
      await whenReady(manager);
      expect(await readyz(manager)).toMatchObject({ primary: first && addressOf(first) });
    });

    test('too few managers: nothing is done until there are enough', async () => {
      await using set = await RedisSet.start({ replicas: 1 });
      const place = new Place(set);
      await using one = place.manage(['--required-node-managers', '2', '--id', 'one']);
      await whenReady(one, 'TOO_FEW_MANAGERS');
      const [first, second] = set.addresses as [string, string];
      const refused = await place.run('failover', second, '--wait', '2s');
      expect(refused.code).toBe(1);
      await using two = place.manage(['--required-node-managers', '2', '--id', 'two']);
      await whenReady(one);
      await whenReady(two);
      expect(await readyz(one)).toMatchObject({ primary: first, term: 1 });
      // A request that was given up is not carried out later, when there are enough managers.
      expect((await set.roles())[first]).toBe('primary');
    });

    test('ZooKeeper away: status ends with 3, a manager waits and goes on', async () => {
      await using set = await RedisSet.start({ replicas: 1 });
      await using proxy = await startProxy(zookeeper.server);
      const place = new Place(set, proxy.connectionString);
      await using manager = place.manage();
      await whenReady(manager);
      await using watch = new Command(['watch', ...place.where, '--json']);
      await watch.line({ change: 'primary', term: 1 });
      proxy.refuse();
      await watch.line({ change: 'zookeeper', state: 'suspended' });
      await whenReady(manager, 'ZOOKEEPER_AWAY');
      const status = await place.run('status', '--timeout', '1s', '--json');
      expect(status).toMatchObject({ code: 3, stdout: '' });
      const [{ error }] = jsonLines(status.stderr) as [
        { error: { code: string; message: string } },
      ];
      expect(error.code).toBe('ZOOKEEPER_UNAVAILABLE');
      expect(error.message).toContain('did not answer within 1s (--timeout): ');
      expect((await place.run('failover', '--timeout', '1s')).code).toBe(3);
      expect((await place.run('watch', '--timeout', '1s')).code).toBe(3);
      await proxy.pass();
      await whenReady(manager);
      await watch.line({ change: 'zookeeper', state: 'connected' });
      // The set goes on with the primary that it had.
      const [, second] = set.addresses as [string, string];
      expect((await place.run('failover', second)).code).toBe(0);
      await watch.line({ change: 'primary', primary: second, term: 2 });
      manager.signal('SIGINT');
      expect((await manager.result).code).toBe(0);
    });
  });
