/** What a rule of the failover may rest on, of the model that is held to the real server elsewhere. */
import { expect, test } from 'vitest';
import { Random } from '../src/harness/random.ts';
import type { GivenSettings } from '../src/redis/index.ts';
import { RedisModel } from '../src/redis/index.ts';
import { VirtualTime } from '../src/redis/virtual-time.ts';

const noId = '0'.repeat(40);

/** Nodes `a`, `b` and `c`, and a client that reaches all of them. */
class Trio {
  readonly time: VirtualTime;
  readonly model: RedisModel;
  /** How long a copy takes. */
  saveMs = 1;

  constructor(...settings: readonly GivenSettings[]) {
    const random = new Random(1);
    this.time = new VirtualTime(() => random.next());
    this.model = new RedisModel({ scheduler: this.time });
    for (const [index, name] of ['a', 'b', 'c'].entries()) {
      this.model.addNode({
        name,
        addresses: [`${name}:6379`],
        settings: { save: '', 'repl-diskless-sync-delay': '0', ...settings[index] },
        speeds: { saveMs: () => this.saveMs },
      });
      this.node(name).start();
    }
  }

  node(name: string) {
    const node = this.model.nodes.get(name);
    if (node === undefined) throw new Error(`there is no node ${name}`);
    return node;
  }

  /** The reply, after so much time for what follows from it. */
  async say(name: string, command: string, ms = 3_000): Promise<unknown> {
    const replying = this.model
      .connect('client', `${name}:6379`)
      .then((connection) => connection.send(command.split(' ')))
      .catch((error: Error) => error.message);
    let reply: unknown = 'none';
    void replying.then((value) => {
      reply = value;
    });
    for (let passed = 0; passed < ms; passed += 10) {
      this.time.advance(10);
      await Promise.resolve(); // a turn for `replying`
      await Promise.resolve();
    }
    return reply;
  }

  async info(name: string): Promise<ReadonlyMap<string, string>> {
    const lines = String(await this.say(name, 'INFO', 50)).split('\r\n');
    return new Map(lines.map((line) => line.split(':') as [string, string]));
  }

  async follow(replica: string, primary: string): Promise<void> {
    await this.say(replica, `REPLICAOF ${primary} 6379`);
  }
}

test('the id of a primary is another one as soon as its first replica comes', async () => {
  const set = new Trio();
  const before = (await set.info('a')).get('master_replid');
  await set.say('a', 'SET key value');
  await set.follow('b', 'a');
  const { id, id2, offset } = idsOf(await set.info('a'));
  expect(id).not.toBe(before);
  expect([id2, offset]).toEqual([noId, '0']);
});

test('a promoted replica goes on from the story of its primary, and the others follow it', async () => {
  const set = new Trio();
  await set.follow('b', 'a');
  await set.follow('c', 'b');
  await set.say('a', 'SET key value');
  const former = idsOf(await set.info('b'));
  await set.say('b', 'REPLICAOF NO ONE');
  const next = idsOf(await set.info('b'));
  expect(next).toMatchObject({ id2: former.id, second: `${Number(former.offset) + 1}` });
  expect(idsOf(await set.info('c'))).toEqual(next);
});

test('a start from an append-only file begins a new story, with all data', async () => {
  const set = new Trio({ appendonly: 'yes' });
  await set.follow('b', 'a');
  await set.say('a', 'SET key value');
  const before = idsOf(await set.info('a'));
  set.node('a').kill();
  set.node('a').start();
  const after = idsOf(await set.info('a'));
  expect(after).toMatchObject({ id2: noId, offset: '0' });
  expect(after.id).not.toBe(before.id);
  expect(await set.say('a', 'GET key')).toBe('value');
});

test('a replica that was started from an append-only file counts from one until it is linked', async () => {
  const set = new Trio({}, { appendonly: 'yes', replicaof: 'a 6379' });
  await set.say('a', 'SET key value');
  set.node('a').kill();
  set.node('b').kill();
  set.node('b').start();
  const info = await set.info('b');
  expect(info.get('slave_repl_offset')).toBe('1');
  expect(await set.say('b', 'GET key')).toBe('value');
});

test('a replica keeps its data while a copy is on its way, and says that it is syncing', async () => {
  const set = new Trio();
  await set.follow('b', 'a');
  await set.say('a', 'SET key value');
  const before = await set.info('b');
  set.saveMs = 60_000;
  await set.follow('b', 'c');
  const syncing = await set.info('b');
  expect(syncing.get('master_link_status')).toBe('down');
  expect(syncing.get('master_sync_in_progress')).toBe('1');
  expect(syncing.get('slave_repl_offset')).toBe(before.get('slave_repl_offset'));
  expect(idsOf(syncing)).toEqual(idsOf(before));
  expect(await set.say('b', 'GET key')).toBe('value');
});

test('a pause of writes on a replica holds up what its primary sends', async () => {
  const set = new Trio();
  await set.follow('b', 'a');
  await set.say('b', 'CLIENT PAUSE 60000 WRITE', 50);
  await set.say('a', 'SET key value');
  const paused = await set.info('b');
  const [applied, read] = [paused.get('slave_repl_offset'), paused.get('slave_read_repl_offset')];
  expect(Number(read)).toBeGreaterThan(Number(applied));
  expect(read).toBe((await set.info('a')).get('master_repl_offset'));
  await set.say('b', 'CLIENT UNPAUSE', 50);
  expect(await set.say('b', 'GET key')).toBe('value');
});

function idsOf(info: ReadonlyMap<string, string>) {
  return {
    id: info.get('master_replid'),
    id2: info.get('master_replid2'),
    offset: info.get('master_repl_offset'),
    second: info.get('second_repl_offset'),
  };
}
