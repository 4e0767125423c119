import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { afterEach, describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect, createClient } from '../../zookeeper/src/index.ts';
import type { ZooKeeperClient, ZooKeeperOptions } from '../src/backends/zookeeper/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import {
  createElection,
  InvalidOptionError,
  InvalidTimingError,
  RecordDamagedError,
  RecordTooNewError,
  StoreUnsuitableError,
} from '../src/index.ts';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function stand(options: { auth?: boolean } = {}) {
  const fake = await FakeZooKeeper.start({ tickTimeMs: 2_000, realTime: true });
  cleanUps.push(() => fake.close());
  const connected = async (): Promise<ZooKeeper> => {
    const auth = options.auth === true ? [{ scheme: 'digest', credentials: 'joe:secret' }] : [];
    const client = await connect(fake.connectionString, { sessionTimeoutMs: 10_000, auth });
    cleanUps.push(() => client.close());
    return client;
  };
  return { fake, connected, client: await connected() };
}

function campaign(client: ZooKeeperClient, options: ZooKeeperOptions = {}, name = 'jobs') {
  const election = createElection({ name, backend: zookeeper(client, options) });
  cleanUps.push(() => election.close());
  return election.campaign();
}

describe('clients that are handed in', () => {
  it.each([[undefined], [null], ['zk://h:2181'], [{}], [7]])('%j is refused', (client) => {
    expect(() => zookeeper(client as never)).toThrow(InvalidOptionError);
    expect(() => zookeeper(client as never)).toThrow('await connect(');
  });

  it('a client that has no session yet is refused, with the way out', async () => {
    const client = createClient('zk://127.0.0.1:1');
    cleanUps.push(() => client.close());
    expect(() => zookeeper(client)).toThrow(StoreUnsuitableError);
    expect(() => zookeeper(client)).toThrow('await client.connected()');
  });

  it('a closed client is refused, and one that is closed later ends the campaign', async () => {
    const { client, connected } = await stand();
    await client.close();
    expect(() => zookeeper(client)).toThrow('closed');
    const other = await connected();
    const backend = zookeeper(other);
    await other.close();
    const election = createElection({ name: 'jobs', backend });
    await expect(election.campaign()).rejects.toThrow(StoreUnsuitableError);
    await election.close();
  });
});

describe('options', () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ layout: 'consul' }, 'layout must be one of "incumbent", "golea"'],
    [{ root: 'relative' }, 'root: "relative" is no path of ZooKeeper: it must begin with "/"'],
    [{ root: '/a//b' }, 'it has an empty part'],
    [{ root: '/a/' }, 'it has an empty part'],
    [{ root: '/a/../b' }, '"." and ".." are not resolved'],
    [{ root: '/zookeeper' }, 'is the servers’ own'],
    [{ root: '/a\u0000' }, 'a character that servers do not take'],
    [{ root: 7 }, 'root must be a string, not 7'],
    [{ acl: 'everybody' }, 'acl must be one of "open", "creator"'],
    [{ acl: [] }, 'acl must be "open", "creator" or a list'],
    [{ acl: [{ perms: 99, scheme: 'world', id: 'anyone' }] }, 'acl must be'],
    [{ create: 'yes' }, 'create must be true or false, not "yes"'],
    [{ onDisconnect: 'wait' }, 'onDisconnect must be one of "hold", "step-down"'],
    [{ predecessorWait: '5s' }, 'predecessorWait must be one of "belief", "off"'],
    [{ recheck: 'often' }, 'recheck'],
    [{ recheck: 0 }, 'recheck: it must be 10 ms or longer'],
    [{ poll: '2s' }, 'are for the layouts "hadoop" and "node" only, not for "incumbent"'],
    [{ delayAfterWin: -1 }, 'delayAfterWin'],
    [{ layuot: 'golea' }, 'zookeeper() has no option "layuot"; it knows layout, root'],
  ];

  it.each(cases)('%j is refused: %s', async (options, message) => {
    const { client } = await stand();
    expect(() => zookeeper(client, options as ZooKeeperOptions)).toThrow(InvalidOptionError);
    expect(() => zookeeper(client, options as ZooKeeperOptions)).toThrow(message);
  });

  it.each([
    ['a//b', 'it has an empty part'],
    ['../b', 'are not resolved'],
    ['/', 'it has an empty part'],
    ['a\uf000', 'a character that servers do not take'],
  ])('the election name %j is refused: %s', async (name, message) => {
    const { client } = await stand();
    expect(() => createElection({ name, backend: zookeeper(client) })).toThrow(message);
  });
});

describe('timing', () => {
  it('D is the session timeout: another one is refused with both numbers', async () => {
    const { client } = await stand();
    const election = createElection({ name: 'jobs', backend: zookeeper(client) });
    expect(election.timing).toMatchObject({
      leaseMs: 10_000,
      beliefMs: 4_000,
      renewEveryMs: 1_000,
      operationTimeoutMs: 1_000,
      stopMarginMs: 500,
    });
    const create = () => createElection({ name: 'jobs', backend: zookeeper(client), lease: '15s' });
    expect(create).toThrow('which is 10s and not 15s');
  });

  it('in a layout of others a longer belief than the session allows is refused', async () => {
    const { client } = await stand();
    const backend = zookeeper(client, { layout: 'kazoo' });
    expect(() => createElection({ name: 'jobs', backend, belief: '6s' })).toThrow(
      InvalidTimingError,
    );
    expect(() => zookeeper(client, { layout: 'kazoo', tickTime: '7s' })).toThrow(
      'a session timeout of 10s is too short for the layout kazoo and a tickTime of 7s',
    );
  });
});

describe('what stands in ZooKeeper already', () => {
  it('a missing election node is said by name where it is not ours to make', async () => {
    const { client } = await stand();
    await expect(campaign(client, { layout: 'golea' })).rejects.toThrow(
      'the election node /jobs does not exist',
    );
    await expect(campaign(client, { create: false })).rejects.toThrow('/incumbent/jobs');
    const term = await campaign(client, { layout: 'golea', create: true });
    await term[Symbol.asyncDispose]();
  });

  it.each([
    ['somebody’s notes', RecordDamagedError, 'its data is not ours'],
    ['{"incumbent":"queue"', RecordDamagedError, 'no JSON'],
    ['{"incumbent":"queue","format":1}', RecordDamagedError, 'unexpected'],
    ['{"incumbent":"queue","format":99}', RecordTooNewError, 'record format 99'],
  ])('data %j is refused and left as it is', async (data, kind, message) => {
    const { client } = await stand();
    await client.ensurePath('/incumbent/jobs');
    await client.set('/incumbent/jobs', data);
    const campaigning = campaign(client);
    await expect(campaigning).rejects.toThrow(kind);
    await expect(campaigning).rejects.toThrow(message);
    expect((await client.get('/incumbent/jobs')).text).toBe(data);
    expect((await client.getChildren('/incumbent/jobs')).children).toEqual([]);
  });

  it('in a layout of others their data is left alone, and the election works without a record', async () => {
    const { client } = await stand();
    await client.create('/jobs', 'theirs');
    const term = await campaign(client, { layout: 'kazoo', tickTime: 200 });
    expect(term.isLeading()).toBe(true);
    await term[Symbol.asyncDispose]();
    expect((await client.get('/jobs')).text).toBe('theirs');
  });

  it('a node that others may not write is refused with the right that is missing', async () => {
    const { client, connected } = await stand();
    await client.ensurePath('/incumbent/jobs');
    await client.setAcl('/incumbent/jobs', [{ perms: 1, scheme: 'world', id: 'anyone' }]);
    await expect(campaign(await connected())).rejects.toThrow(/does not let this client/);
  });

  it('"creator" needs a client that is authenticated', async () => {
    const { client } = await stand();
    await expect(campaign(client, { acl: 'creator' })).rejects.toThrow(
      '"creator" needs a client that is authenticated',
    );
    const named = await stand({ auth: true });
    const term = await campaign(named.client, { acl: 'creator' });
    const { path } = term.guard as { path: string };
    expect((await named.client.getAcl(path)).acl[0]).toMatchObject({ scheme: 'digest' });
    await term[Symbol.asyncDispose]();
  });

  it('a record of another ensemble, whose tokens were higher, is refused', async () => {
    const { client } = await stand();
    const term = await campaign(client);
    await term[Symbol.asyncDispose]();
    const { text } = await client.get('/incumbent/jobs');
    const high = text.replace(/"token":"\d+"/, '"token":"99999999999999999999"');
    await client.set('/incumbent/jobs', high);
    await expect(campaign(client)).rejects.toThrow('has reached token 99999999999999999999');
  });
});
