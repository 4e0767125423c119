/**
 * The facts on which a rule of the failover may rest, and those on which it may not. Each is told
 * of the model and of real servers alike, so none of them is only believed.
 */
import { randomBytes } from 'node:crypto';
import { redisAvailable } from '@incumbent/servers';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { Random } from '../src/harness/random.ts';
import { calm, password } from '../src/redis/beside/layout.ts';
import { ModelSide } from '../src/redis/beside/model-side.ts';
import { ServerSide } from '../src/redis/beside/server-side.ts';
import type { Side } from '../src/redis/beside/side.ts';
import type { Step } from '../src/redis/beside/steps.ts';
import type { GivenSettings } from '../src/redis/index.ts';

const missing = redisAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

const noId = '0'.repeat(40);
/** Saved when the process is told to end, and not by itself. */
const rdb = { save: '1000000 1', appendonly: 'no' };
const aof = { save: '', appendonly: 'yes' };
const none = { save: '', appendonly: 'no' };
const [a, b, c] = [0, 1, 2] as const;

/** Three nodes of one side. */
class Trio {
  readonly side: Side;
  readonly #ports: ReadonlyMap<string, number>;

  private constructor(side: Side, ports: ReadonlyMap<string, number>) {
    this.side = side;
    this.#ports = ports;
  }

  static async open(
    kind: string,
    { onTestFinished }: TestContext,
    given: readonly GivenSettings[],
    loadMs = 0,
  ): Promise<Trio> {
    const settings = given.map((each) => ({ ...calm, ...each }));
    const servers = await ServerSide.open(settings);
    onTestFinished(() => servers[Symbol.asyncDispose]());
    const random = new Random(1);
    const side =
      kind === 'servers'
        ? servers
        : new ModelSide(servers.layout, settings, () => random.next(), loadMs);
    const ports = servers.layout.ways.map(({ from, to, port }) => [`${from}${to}`, port] as const);
    const trio = new Trio(side, new Map(ports));
    for (const node of settings.keys()) await side.act({ type: 'start', node });
    return trio;
  }

  say(node: number, command: string): Promise<string> {
    return this.side.act({ type: 'command', node, parts: command.split(' ') });
  }

  async do(type: 'start' | 'kill' | 'pause' | 'resume', node: number): Promise<void> {
    await this.side.act({ type, node });
  }

  /** Told to follow, and not waited for. */
  async tellToFollow(replica: number, primary: number): Promise<void> {
    await this.say(replica, `REPLICAOF 127.0.0.1 ${this.#ports.get(`${replica}${primary}`)}`);
  }

  async follow(replica: number, primary: number): Promise<void> {
    await this.tellToFollow(replica, primary);
    await this.linked(replica);
  }

  linked(replica: number): Promise<void> {
    return this.says(replica, { master_link_status: 'up' });
  }

  says(node: number, fields: Readonly<Record<string, string>>): Promise<void> {
    return this.side.until(node, JSON.stringify(fields), (info) =>
      Object.entries(fields).every(([field, value]) => info.get(field) === value),
    );
  }

  /** Until a replica has all that its primary has written. */
  async caughtUp(replica: number, primary: number): Promise<void> {
    const { offset } = await this.ids(primary);
    // There may be PINGs behind it.
    await this.side.until(
      replica,
      `it has ${offset}`,
      (info) => Number(info.get('slave_repl_offset')) >= offset,
    );
  }

  async ids(node: number) {
    const info = await this.side.info(node);
    return {
      id: info.get('master_replid'),
      id2: info.get('master_replid2'),
      offset: Number(info.get('master_repl_offset')),
      second: Number(info.get('second_repl_offset')),
    };
  }

  link(from: number, to: number, how: (Step & { readonly type: 'link' })['how']): Promise<string> {
    return this.side.act({ type: 'link', from, to, how });
  }
}

for (const kind of ['model', 'servers']) {
  describe.skipIf(missing !== undefined).concurrent(`of the ${kind}`, () => {
    test('the id of a primary changes when its first replica comes, and nothing is lost', async (context) => {
      const trio = await Trio.open(kind, context, [none, none]);
      await trio.say(a, 'SET key value');
      const before = await trio.ids(a);
      expect(before.offset).toBe(0);
      await trio.follow(b, a);
      const after = await trio.ids(a);
      expect(after).toMatchObject({ id2: noId, offset: 0, second: -1 });
      expect(after.id).not.toBe(before.id);
      expect(await trio.say(b, 'GET key')).toBe('"value"');
    });

    test('a primary that is started from an RDB file serves replicas that have all, under a new id', async (context) => {
      const trio = await Trio.open(kind, context, [rdb, none]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      await trio.caughtUp(b, a);
      const before = await trio.ids(a);
      await trio.say(a, 'SAVE');
      await trio.do('kill', a);
      await trio.do('start', a);
      await trio.linked(b);
      const after = await trio.ids(a);
      expect(after).toMatchObject({ id2: before.id, second: before.offset + 1 });
      expect(after.id).not.toBe(before.id);
      const info = await trio.side.info(a);
      expect([info.get('sync_full'), info.get('sync_partial_ok')]).toEqual(['0', '1']);
    });

    test('a replica that has more than its primary was started with loses it', async (context) => {
      const trio = await Trio.open(kind, context, [rdb, none]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      await trio.say(a, 'SAVE');
      await trio.say(a, 'SET later value');
      await trio.caughtUp(b, a);
      await trio.do('kill', a);
      await trio.do('start', a);
      await trio.linked(b);
      expect((await trio.side.info(a)).get('sync_full')).toBe('1');
      expect(await trio.say(b, 'GET key')).toBe('"value"');
      expect(await trio.say(b, 'GET later')).toBe('null');
    });

    test('a primary that is started from an append-only file begins a new history with all data', async (context) => {
      const trio = await Trio.open(kind, context, [aof, none]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      const before = await trio.ids(a);
      await trio.link(b, a, 'refuse');
      await trio.do('kill', a);
      await trio.do('start', a);
      const after = await trio.ids(a);
      expect(after).toMatchObject({ id2: noId, offset: 0, second: -1 });
      expect(after.id).not.toBe(before.id);
      expect(await trio.say(a, 'GET key')).toBe('"value"');
      await trio.link(b, a, 'pass');
      await trio.linked(b);
      expect((await trio.side.info(a)).get('sync_full')).toBe('1');
    });

    test('a replica that is started from an append-only file says 1, whatever it has', async (context) => {
      const trio = await Trio.open(kind, context, [none, aof]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      await trio.caughtUp(b, a);
      const before = await trio.ids(b);
      await trio.say(b, 'CONFIG REWRITE');
      await trio.link(b, a, 'refuse');
      await trio.do('kill', b);
      await trio.do('start', b);
      const info = await trio.side.info(b);
      expect(info.get('role')).toBe('slave');
      expect(info.get('slave_repl_offset')).toBe('1');
      expect(await trio.ids(b)).toMatchObject({ id2: noId, offset: 0 });
      expect((await trio.ids(b)).id).not.toBe(before.id);
      expect(await trio.say(b, 'GET key')).toBe('"value"');
    });

    test('a replica without persistence comes back with its last whole copy, and goes on from it', async (context) => {
      const trio = await Trio.open(kind, context, [none, none]);
      await trio.say(a, 'SET key value');
      await trio.follow(b, a);
      const { id, offset } = await trio.ids(b);
      await trio.say(a, 'SET later value');
      await trio.caughtUp(b, a);
      await trio.say(b, 'CONFIG REWRITE');
      await trio.link(b, a, 'refuse');
      await trio.do('kill', b);
      await trio.do('start', b);
      expect(await trio.ids(b)).toMatchObject({ id, offset });
      expect(await trio.say(b, 'GET key')).toBe('"value"');
      expect(await trio.say(b, 'GET later')).toBe('null');
      await trio.link(b, a, 'pass');
      await trio.linked(b);
      await trio.caughtUp(b, a);
      expect(await trio.say(b, 'GET later')).toBe('"value"');
      expect((await trio.side.info(a)).get('sync_partial_ok')).toBe('1');
    });

    test('one that was started as a replica and then promoted forgets whence it came with its first replica', async (context) => {
      const trio = await Trio.open(kind, context, [none, rdb, none]);
      await trio.follow(b, a);
      await trio.follow(c, a);
      await trio.say(a, 'SET key value');
      await trio.caughtUp(b, a);
      await trio.caughtUp(c, a);
      const { id, offset } = await trio.ids(a);
      await trio.say(b, 'CONFIG REWRITE');
      await trio.link(b, a, 'refuse');
      await trio.say(b, 'SAVE');
      await trio.do('kill', b);
      await trio.do('start', b);
      await trio.say(b, 'REPLICAOF NO ONE');
      expect(await trio.ids(b)).toMatchObject({ id2: id, second: offset + 1 });
      // It has all that this one has, and copies it all the same.
      await trio.follow(c, b);
      expect(await trio.ids(b)).toMatchObject({ id2: noId, second: -1 });
      expect((await trio.side.info(b)).get('sync_full')).toBe('1');
    });

    test('while a copy is written the replica has its own data, id and offset, and may be promoted', async (context) => {
      const trio = await Trio.open(kind, context, [
        none,
        none,
        { ...none, 'repl-diskless-sync': 'no' },
      ]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      await trio.caughtUp(b, a);
      const before = await trio.ids(b);
      await trio.say(c, 'SET other value');
      await trio.side.act({ type: 'slow-copies', node: c, areSlow: true });
      await trio.tellToFollow(b, c);
      await trio.says(b, { master_sync_in_progress: '1', master_link_status: 'down' });
      const info = await trio.side.info(b);
      expect(info.get('slave_repl_offset')).toBe(`${before.offset}`);
      expect(await trio.ids(b)).toEqual(before);
      expect(await trio.say(b, 'GET key')).toBe('"value"');
      await trio.say(b, 'REPLICAOF NO ONE');
      expect(await trio.ids(b)).toMatchObject({ id2: before.id, second: before.offset + 1 });
      expect(await trio.say(b, 'GET key')).toBe('"value"');
    });

    test.for([
      ['still sends the copy that a replica waits for', false],
      ['sends no copy once the connections of its replicas are closed', true],
    ] as const)('a primary that is made the replica of nobody %s', async ([, closes], context) => {
      const trio = await Trio.open(kind, context, [
        none,
        none,
        { ...none, 'repl-diskless-sync': 'yes', 'repl-diskless-sync-delay': '2' },
      ]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      await trio.caughtUp(b, a);
      await trio.tellToFollow(b, c);
      await trio.says(c, { connected_slaves: '1' });
      await trio.say(c, 'REPLICAOF 127.0.0.1 1');
      if (closes) await trio.say(c, 'CLIENT KILL TYPE slave');
      // A node that stands aside gives no copy to those who come later.
      await trio.side.until(b, 'its link is gone again', (info) => {
        const seconds = Number(info.get('master_link_down_since_seconds'));
        return closes ? seconds >= 4 : info.get('master_link_status') === 'up';
      });
      expect(await trio.say(b, 'GET key')).toBe(closes ? '"value"' : 'null');
    });

    test('a replica that is killed before its append-only file is rewritten has its data of before the copy', async (context) => {
      const trio = await Trio.open(kind, context, [none, aof]);
      await trio.say(a, 'SET key value');
      await trio.say(b, 'SET own value');
      await trio.side.act({ type: 'slow-copies', node: b, areSlow: true });
      await trio.follow(b, a);
      expect(await trio.say(b, 'GET key')).toBe('"value"');
      await trio.link(b, a, 'refuse');
      await trio.do('kill', b);
      await trio.do('start', b);
      expect(await trio.say(b, 'GET key')).toBe('null');
      expect(await trio.say(b, 'GET own')).toBe('"value"');
    });

    test('a server that is killed while a child of it writes a file is connected until that ends', async (context) => {
      const trio = await Trio.open(kind, context, [none, none]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      await trio.side.act({ type: 'slow-copies', node: a, areSlow: true });
      await trio.say(a, 'BGSAVE');
      await trio.do('kill', a);
      await trio.side.until(
        b,
        'it has heard nothing for 2 s, and takes its primary for linked',
        (info) => Number(info.get('master_last_io_seconds_ago')) >= 2,
      );
      // Nobody listens there any more, so one that asks anew learns it.
      await trio.say(b, 'CLIENT KILL TYPE master');
      await trio.says(b, { master_link_status: 'down' });
    });

    test('while a child of a server writes a file, nobody learns that the server closed a connection', async (context) => {
      const trio = await Trio.open(kind, context, [none, none, none]);
      await trio.follow(b, a);
      await trio.follow(c, b);
      await trio.say(a, 'SET key value');
      await trio.caughtUp(c, a);
      const before = await trio.ids(c);
      await trio.side.act({ type: 'slow-copies', node: b, areSlow: true });
      await trio.say(b, 'BGSAVE');
      await trio.say(b, 'REPLICAOF NO ONE');
      expect((await trio.side.info(b)).get('connected_slaves')).toBe('0');
      expect((await trio.ids(b)).id2).toBe(before.id);
      await trio.side.until(
        c,
        'it has heard nothing for 2 s, and takes its primary for linked',
        (info) => Number(info.get('master_last_io_seconds_ago')) >= 2,
      );
      expect(await trio.ids(c)).toEqual(before);
    });

    test('a pause of writes on a replica holds up what it is sent, and a break then costs a whole copy', async (context) => {
      const trio = await Trio.open(kind, context, [none, none]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      await trio.caughtUp(b, a);
      await trio.say(b, 'CLIENT PAUSE 1000000 WRITE');
      const before = await trio.ids(b);
      await trio.say(a, 'SET later value');
      await trio.says(b, { slave_read_repl_offset: `${(await trio.ids(a)).offset}` });
      expect((await trio.side.info(b)).get('slave_repl_offset')).toBe(`${before.offset}`);
      expect(await trio.say(b, 'GET later')).toBe('null');
      await trio.link(b, a, 'refuse');
      await trio.says(b, { master_link_status: 'down' });
      // Nothing was kept to go on from.
      expect((await trio.side.info(b)).get('slave_repl_offset')).toBe('1');
      await trio.link(b, a, 'pass');
      await trio.linked(b);
      expect((await trio.side.info(a)).get('sync_full')).toBe('2');
    });

    test('a replica whose primary stands still says so after repl-timeout, and goes on', async (context) => {
      const settings = { ...none, 'repl-timeout': '2', 'repl-ping-replica-period': '1' };
      const trio = await Trio.open(kind, context, [settings, settings]);
      await trio.follow(b, a);
      await trio.say(a, 'SET key value');
      await trio.caughtUp(b, a);
      await trio.do('pause', a);
      expect((await trio.side.info(b)).get('master_link_status')).toBe('up');
      await trio.says(b, { master_link_status: 'down' });
      expect(await trio.say(b, 'GET key')).toBe('"value"');
      await trio.do('resume', a);
      await trio.linked(b);
      expect((await trio.side.info(a)).get('sync_full')).toBe('1');
    });

    test('a primary whose replica stands still counts it until repl-timeout', async (context) => {
      const settings = { ...none, 'repl-timeout': '2', 'repl-ping-replica-period': '1' };
      const trio = await Trio.open(kind, context, [settings, settings]);
      await trio.follow(b, a);
      await trio.do('pause', b);
      expect((await trio.side.info(a)).get('connected_slaves')).toBe('1');
      await trio.says(a, { connected_slaves: '0' });
      await trio.do('resume', b);
      await trio.linked(b);
    });

    test('min-replicas-to-write refuses writes once a replica is silent for longer than the lag', async (context) => {
      const settings = {
        ...none,
        'min-replicas-to-write': '1',
        'min-replicas-max-lag': '2',
      };
      const trio = await Trio.open(kind, context, [settings, none]);
      expect(await trio.say(a, 'SET key value')).toMatch(/^-NOREPLICAS/);
      await trio.follow(b, a);
      await trio.says(a, { min_slaves_good_slaves: '1' });
      expect(await trio.say(a, 'SET key value')).toBe('"OK"');
      await trio.do('pause', b);
      expect(await trio.say(a, 'SET key later')).toBe('"OK"');
      await trio.says(a, { min_slaves_good_slaves: '0' });
      expect(await trio.say(a, 'SET key never')).toMatch(/^-NOREPLICAS/);
      await trio.do('resume', b);
      await trio.says(a, { min_slaves_good_slaves: '1' });
    });

    test('a replica that has no password for its primary says again and again that it syncs', async (context) => {
      const trio = await Trio.open(kind, context, [{ ...none, requirepass: password }, none]);
      await trio.tellToFollow(b, a);
      await trio.says(b, { master_sync_in_progress: '1' });
      await trio.says(b, { master_sync_in_progress: '0' });
      await trio.says(b, { master_sync_in_progress: '1' });
      expect((await trio.side.info(b)).get('master_link_status')).toBe('down');
    });

    test('a replica with a wrong password says that its link is down', async (context) => {
      const settings = [
        { ...none, requirepass: password },
        { ...none, masterauth: 'wrong' },
      ];
      const trio = await Trio.open(kind, context, settings);
      await trio.say(b, 'SET own value');
      await trio.tellToFollow(b, a);
      await trio.says(b, { master_link_status: 'down', master_sync_in_progress: '0' });
      expect(await trio.say(b, 'GET own')).toBe('"value"');
    });

    test('a primary that loads its data answers INFO and ROLE, and refuses REPLICAOF', async (context) => {
      const trio = await Trio.open(kind, context, [rdb], 10_000);
      for (let index = 0; index < 40; index += 1) {
        await trio.say(a, `SET key${index} ${randomBytes(2_000).toString('base64')}`);
      }
      // It looks at its clients after each of them.
      if (kind === 'servers') {
        await trio.say(
          a,
          'CONFIG SET loading-process-events-interval-bytes 1024 key-load-delay 250000',
        );
        await trio.say(a, 'CONFIG REWRITE');
      }
      await trio.say(a, 'SAVE');
      await trio.do('kill', a);
      await trio.do('start', a);
      expect((await trio.side.info(a)).get('loading')).toBe('1');
      for (const command of ['PING', 'SET key1 2', 'DBSIZE', 'REPLICAOF NO ONE']) {
        expect(await trio.say(a, command)).toMatch(/^-LOADING/);
      }
      expect(await trio.say(a, 'ROLE')).toMatch(/^\["master",/);
      expect(await trio.say(a, 'CONFIG GET replica-priority')).toBe('["replica-priority","100"]');
      await trio.says(a, { loading: '0' });
      expect(await trio.say(a, 'DBSIZE')).toBe('40');
    });

    test('a pause of writes ends by itself, and then the writes are executed', async (context) => {
      const trio = await Trio.open(kind, context, [none]);
      await trio.say(a, 'CLIENT PAUSE 1000 WRITE');
      await trio.side.act({ type: 'block', node: a, parts: ['SET', 'key', 'value'] });
      expect(await trio.say(a, 'GET key')).toBe('null');
      await trio.says(a, { blocked_clients: '1' });
      await trio.says(a, { blocked_clients: '0' });
      expect(await trio.say(a, 'GET key')).toBe('"value"');
    });
  });
}
