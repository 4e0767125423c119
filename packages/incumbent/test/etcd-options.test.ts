import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import type { EtcdOptions } from '../src/backends/etcd/index.ts';
import { etcd } from '../src/backends/etcd/index.ts';
import {
  decodeCandidate,
  electionKeys,
  encodeCandidate,
  encodeKey,
  nameOf,
  parsePlace,
  placeKey,
  placeName,
} from '../src/backends/etcd/keys.ts';
import { leaseGrant, range, txn } from '../src/backends/etcd/methods.ts';
import type { EtcdPlace } from '../src/backends/etcd/session.ts';
import { EtcdSession } from '../src/backends/etcd/session.ts';
import { EtcdStore } from '../src/backends/etcd/store.ts';
import { readClocks } from '../src/base/clock.ts';
import { Countdown, deadlineAfter } from '../src/base/deadline.ts';
import { createElection, InvalidOptionError, InvalidTimingError } from '../src/index.ts';
import { emptyQueueRecord } from '../src/record/queue-record.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { FakeGrpc } from './support/fake-grpc.ts';

const client = new FakeGrpc();

describe('clients that are handed in', () => {
  it.each([[undefined], [null], ['127.0.0.1:2379'], [{}], [[client, null]], [7]])(
    '%j is refused, with the way out',
    (given) => {
      expect(() => etcd(given as never)).toThrow(InvalidOptionError);
      expect(() => etcd(given as never)).toThrow('new grpc.Client(');
    },
  );

  it('no client at all is refused', () => {
    expect(() => etcd([])).toThrow('at least one gRPC client');
  });

  it('clients of grpc-js are taken, with its Metadata', () => {
    const real = new Client('127.0.0.1:1', credentials.createInsecure());
    const auth = { user: 'joe', password: 'pass', Metadata };
    expect(etcd([real], { auth }).kind).toBe('etcd');
    real.close();
  });
});

describe('options', () => {
  it.each<readonly [object | string | null, string]>([
    [{ lease: '5s' }, 'has no option "lease"; it knows ttl, root'],
    ['ttl=5', 'takes options'],
    [null, 'takes options'],
    [{ ttl: '1500ms' }, 'not a whole number of seconds'],
    [{ ttl: 0 }, 'not a whole number of seconds'],
    [{ ttl: 'soon' }, 'not a duration'],
    [{ root: 7 }, 'root must be a string'],
    [{ root: 'a\u0000b' }, 'control character'],
    [{ auth: { user: 'joe' } }, 'auth must be { user, password, Metadata'],
    [{ auth: null }, 'auth must be'],
    [{ onDisconnect: 'panic' }, 'onDisconnect must be one of "hold", "step-down"'],
    [{ predecessorWait: true }, 'predecessorWait must be one of'],
    [{ recheck: 5 }, 'recheck: it must be 10 ms or longer'],
    [{ electionTimeout: 'x' }, 'electionTimeout'],
    [{ delayAfterWin: -1 }, 'delayAfterWin must not be negative'],
  ])('%j are refused', (options, why) => {
    expect(() => etcd(client, options as EtcdOptions)).toThrow(InvalidOptionError);
    expect(() => etcd(client, options as EtcdOptions)).toThrow(why);
  });

  it('a TTL that leaves nothing to believe in is refused with both numbers', () => {
    expect(() => etcd(client, { ttl: '1s' })).toThrow(
      'ttl: 1s is too short for servers with an election timeout of 1s',
    );
    expect(etcd(client, { ttl: '1s', electionTimeout: '100ms' }).limits?.sessionTimeoutMs).toBe(
      1_000,
    );
  });

  it('the timing follows from the TTL', () => {
    const open = (options: EtcdOptions, more: object = {}) =>
      createElection({ name: 'jobs', backend: etcd(client, options), ...more });
    expect(open({}).timing).toMatchObject({ leaseMs: 15_000, beliefMs: 6_000 });
    expect(open({ ttl: '60s' }).timing).toMatchObject({ leaseMs: 60_000, beliefMs: 24_000 });
    // 3 s − 1 s − 1 s.
    expect(open({ ttl: '3s' }).timing).toMatchObject({ leaseMs: 3_000, beliefMs: 1_000 });
    expect(() => open({}, { lease: '10s' })).toThrow(InvalidOptionError);
    expect(() => open({}, { belief: '9.5s' })).toThrow(InvalidTimingError);
    expect(() => open({}, { belief: '9.5s' })).toThrow('may be a Go program that does not wait');
  });

  it.each([
    ['a/', 'ends with "/"'],
    ['a//b', 'has "//" in it'],
    ['incumbent', 'the records of all elections'],
    ['incumbent/record/a', 'the records of all elections'],
  ])('the election %s is refused', (name, why) => {
    expect(() => createElection({ name, backend: etcd(client) })).toThrow(InvalidOptionError);
    expect(() => createElection({ name, backend: etcd(client) })).toThrow(why);
  });
});

describe('where an election is', () => {
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const kv = (key: string, createRevision: bigint) => ({
    key: new TextEncoder().encode(key),
    createRevision,
    modRevision: 0n,
    version: 1n,
    value: new Uint8Array(),
    lease: 0n,
  });

  it('is where etcdctl elect and Go programs have it, and the record is no member', () => {
    const keys = electionKeys('', 'billing');
    expect(keys.prefix).toBe('billing/');
    expect([text(keys.range.key), text(keys.range.rangeEnd)]).toEqual(['billing/', 'billing0']);
    expect(placeKey(keys.prefix, 0x694dabcn)).toBe('billing/694dabc');
    for (const name of ['billing', 'a', 'a/b', '/leader']) {
      const { record } = electionKeys('', name);
      for (const other of ['billing', 'a', 'a/b', '/leader']) {
        const { prefix } = electionKeys('', other);
        expect(record.startsWith(prefix)).toBe(false);
      }
    }
    expect(electionKeys('/x/', 'billing')).toMatchObject({
      prefix: '/x/billing/',
      record: '/x/incumbent/record/billing',
    });
  });

  it('has names of places that tell one creation from another, and leave out keys below', () => {
    const name = nameOf('a/', kv('a/1f', 12n));
    expect(name).toBe('a/1f@12');
    expect(parsePlace(name as string)).toEqual({ key: 'a/1f', createRevision: 12n });
    expect(parsePlace(placeName('a/x@7', 2n ** 62n))).toEqual({
      key: 'a/x@7',
      createRevision: 2n ** 62n,
    });
    expect(nameOf('a/', kv('a/b/1f', 12n))).toBeUndefined();
    for (const none of ['', 'a/1f', 'a/1f@', '@1', 'a/1f@0', 'a/1f@-1', 'a/1f@x']) {
      expect(parsePlace(none)).toBeUndefined();
    }
  });

  it.each<readonly [string, readonly number[]]>([
    ['Latin-1', [0x63, 0x61, 0x66, 0xe9]],
    ['characters that are cut', [0xc3, 0x28, 0xe2, 0x82, 0x41, 0xf0, 0x9f, 0x98]],
    ['half a surrogate pair', [0xed, 0xb3, 0xa9]],
    ['more than the shortest form', [0xc0, 0xaf, 0xe0, 0x80, 0xaf]],
    [
      'characters and what is none',
      [0xc3, 0xa9, 0xff, 0xf0, 0x9f, 0x98, 0x80, 0x80, 0xef, 0xbf, 0xbd],
    ],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x31]],
    ['no text at all', [0x00, 0xff, 0xfe, 0x80]],
  ])('has names that lead back to the key where that has %s', (_, bytes) => {
    const key = Uint8Array.of(0x61, 0x2f, ...bytes);
    const name = nameOf('a/', { ...kv('', 12n), key }) as string;
    // The record may name it.
    const place = parsePlace(JSON.parse(JSON.stringify(name)));
    expect(place?.createRevision).toBe(12n);
    expect([...encodeKey(place?.key as string)]).toEqual([...key]);
  });

  it('finds places again where the election begins with a byte order mark', () => {
    const { prefix } = electionKeys('', '\uFEFFbilling');
    const key = placeKey(prefix, 0x1fn);
    expect(nameOf(prefix, kv(key, 12n))).toBe(placeName(key, 12n));
  });

  it('shows ours by their data, and others by their proposals', () => {
    const candidate = {
      id: 'host "7"',
      incarnation: 'i',
      addresses: ['10.0.0.1:1'],
      metadata: { build: '二' },
    };
    const value = encodeCandidate({ guid: 'g', candidate });
    expect(decodeCandidate('a/1@2', value)).toEqual({ candidate, guid: 'g' });
    const proposal = (given: string) => decodeCandidate('a/1@2', new TextEncoder().encode(given));
    const foreign = (id: string) => ({
      candidate: { id, incarnation: 'a/1@2', addresses: [], metadata: {} },
      guid: undefined,
    });
    for (const given of ['host-7', '{"id":"x"}', '{"incumbent":"candidate"}', 'null', '[1]', '{']) {
      expect(proposal(given)).toEqual(foreign(given));
    }
    expect(proposal('')).toEqual(foreign('a/1@2'));
    const odd = '{"incumbent":"candidate","guid":"g","id":"a","incarnation":"i","addresses":7}';
    expect(proposal(odd).candidate).toEqual({
      id: 'a',
      incarnation: 'i',
      addresses: [],
      metadata: {},
    });
  });
});

describe('a confirmation', () => {
  async function stand() {
    const clock = new SimulatedClock();
    const server = new FakeGrpc();
    server.onCall = ({ path, answer }) => {
      if (path === leaseGrant.path) answer(null, leaseGrant.response.encode({ id: 7n, ttl: 9n }));
      else if (path === txn.path) answer(null, txn.response.encode({ succeeded: true }));
    };
    const calls = new EtcdCalls([server], undefined);
    const session = new EtcdSession({ calls, clock, ttlMs: 9_000, onTrouble: () => {} });
    const { signal } = new AbortController();
    const lease = await session.leases.take('a/', 'g', signal);
    const place: EtcdPlace = {
      name: 'a/7@5',
      key: 'a/7',
      token: 5n,
      session: lease,
      guid: 'g',
      before: '',
    };
    return { clock, server, session, place, signal };
  }

  it('has a read in it that is not serializable, or a member that is cut off would answer it', async () => {
    const { server, session, place, signal } = await stand();
    expect(await session.confirm([place], signal)).toEqual({ there: [place], gone: [] });
    const [sent] = server.calls.filter(({ path }) => path === txn.path);
    const request = txn.request.decode(sent?.request as Uint8Array);
    expect(request.compare).toHaveLength(1);
    for (const branch of [request.success, request.failure]) {
      expect(branch.some(({ range }) => range !== undefined && range.serializable !== true)).toBe(
        true,
      );
    }
  });

  it('is not even asked for on a lease that was not kept lately: those behind may not wait', async () => {
    const { clock, server, session, place, signal } = await stand();
    await clock.advance(2_900);
    expect(await session.confirm([place], signal)).toEqual({ there: [place], gone: [] });
    const asked = server.calls.length;
    await clock.advance(200);
    await expect(session.confirm([place], signal)).rejects.toMatchObject({ retryable: true });
    const store = new EtcdStore(session, electionKeys('', 'a'));
    const record = emptyQueueRecord('a', 'n');
    await expect(store.commit(place, record, 0n, signal)).rejects.toMatchObject({
      retryable: true,
    });
    expect(server.calls).toHaveLength(asked);
  });

  it('that is refused tells of every place: which are gone, and that the others were there', async () => {
    const { server, session, place, signal } = await stand();
    const places = [5n, 6n, 7n, 8n].map((token) => {
      return { ...place, key: `a${token}/7`, name: `a${token}/7@${token}`, token };
    });
    const answerNow = server.onCall;
    server.onCall = (call) => {
      if (call.path !== txn.path) return answerNow?.(call);
      const { failure } = txn.request.decode(call.request);
      // The second is not there, and the third was deleted and put again.
      const found = [5n, undefined, 70n, 8n];
      const empty = range.response.decode(range.response.encode({}));
      const responses = failure.map((_, index) => {
        const createRevision = found[index];
        const kvs = createRevision === undefined ? [] : [{ createRevision }];
        return { range: { ...empty, kvs } };
      });
      const answer = { succeeded: false, responses: responses as never };
      call.answer(null, txn.response.encode(answer));
    };
    const before = server.calls.length;
    expect(await session.confirm(places, signal)).toEqual({
      there: [places[0], places[3]],
      gone: [places[1], places[2]],
    });
    expect(server.calls.length - before).toBe(1);
  });

  it('leaves out a place whose lease was not kept lately, and proves the others', async () => {
    const { clock, session, place, signal } = await stand();
    await clock.advance(3_100);
    const kept = new Countdown();
    kept.set(deadlineAfter(readClocks(clock), place.session.ttlMs / 3));
    const lease = { ...place.session, fresh: kept };
    const fresh = { ...place, key: 'b/8', name: 'b/8@6', token: 6n, session: lease };
    expect(await session.confirm([place, fresh], signal)).toEqual({ there: [fresh], gone: [] });
  });
});
