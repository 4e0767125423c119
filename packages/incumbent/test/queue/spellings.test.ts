// One queue, and clients that know it by different paths: a chroot, a namespace.
import { describe, expect, it } from 'vitest';
import { isLeadingIn } from '../../src/mechanisms/queue/named-places.ts';
import { emptyQueueRecord } from '../../src/record/queue-record.ts';
import { Stage, waitMs } from './support.ts';

const paths = { a: '/inc/', b: '/app/inc/' };

async function led(options: { readonly isMixed?: boolean } = {}) {
  const stage = new Stage(options);
  const a = stage.candidate('a', { path: paths.a });
  const b = stage.candidate('b', { path: paths.b });
  const first = await stage.soon(a.election.campaign());
  return { stage, a, b, first };
}

describe.each([false, true])(
  'clients that spell the queue’s path differently (mixed: %s)',
  (isMixed) => {
    it('a waiter counts the leader as gone from when its place is, not from when it looked', async () => {
      const { stage, a, b, first } = await led({ isMixed });
      const next = b.election.campaign();
      // Longer than any wait: one that counts from the first look has nothing left to wait.
      await stage.clock.advance(3 * waitMs);
      a.session.outage = 'silent';
      stage.store.deletePlace(stage.store.places('jobs')[0] as string);
      expect(await stage.handOver(first, next)).toBeGreaterThanOrEqual(waitMs);
    });

    it('a clean end hands over at once', async () => {
      const { stage, b, first } = await led({ isMixed });
      const next = b.election.campaign();
      await stage.clock.advance(10);
      await stage.soon(first[Symbol.asyncDispose]());
      const second = await stage.soon(next);
      expect(second.predecessor).toMatchObject({ id: 'a', clean: true, token: first.token });
    });

    it('sees the leader, also what it has proclaimed, and misses it when it is gone', async () => {
      const { stage, a, b, first } = await led({ isMixed });
      expect(await stage.soon(b.election.leader())).toMatchObject({
        state: 'led',
        token: first.token,
      });
      await stage.soon(first.proclaim({ addresses: ['10.0.0.1:80'] }));
      expect((await stage.soon(b.election.candidates()))[0]).toMatchObject({
        id: 'a',
        addresses: ['10.0.0.1:80'],
      });
      const stop = new AbortController();
      const seen: string[] = [];
      const watching = (async () => {
        for await (const { state } of b.election.observe({ signal: stop.signal })) seen.push(state);
      })();
      await stage.clock.advance(10);
      a.session.expire();
      await stage.clock.advance(10);
      stop.abort();
      await watching;
      expect(seen).toEqual(['led', 'vacant']);
    });

    it('an operator’s request reaches the leader, which goes on knowing itself', async () => {
      const { stage, b, first } = await led({ isMixed });
      const place = stage.store.record('jobs')?.holding?.place;
      await stage.soon(b.election.drain('b', new Date(stage.clock.wallMs() + 3_600_000)));
      // In the leader's spelling: a reader with that spelling may be an older version.
      expect(stage.store.record('jobs')?.holding?.place).toBe(place);
      await stage.clock.advance(5_000);
      expect(first.isLeading()).toBe(true);
      expect((await stage.soon(b.election.vacate())).changed).toBe(true);
      await stage.clock.advance(10);
      expect(first.signal.aborted).toBe(true);
      await stage.soon(first[Symbol.asyncDispose]());
      expect(await first.ended).toMatchObject({ reason: 'vacated', released: true });
    });
  },
);

describe('a place in a record', () => {
  const candidate = { id: 'a', incarnation: 'i', addresses: [], metadata: {} };
  const holding = {
    candidate,
    place: '/other/le_0000000000',
    electedAtUnixMs: 0,
    leaseMs: 1,
    revoked: false,
    request: undefined,
  };
  const record = { ...emptyQueueRecord('e', 'n'), token: 7n, holding };
  const store = { nameHere: (recorded: string) => recorded.replace('/other/', '/here/') };
  const placeOf = (name: string, token: bigint) => ({ name, token, session: undefined });

  it.each([
    [true, '/here/le_0000000000', 7n],
    [false, '/here/le_0000000001', 7n],
    // The name comes again when the election is made anew: that is another leader.
    [false, '/here/le_0000000000', 6n],
  ])('is ours: %s, for the name %s and the token %s', (expected, name, token) => {
    expect(isLeadingIn(store, record, placeOf(name, token))).toBe(expected);
  });
});
