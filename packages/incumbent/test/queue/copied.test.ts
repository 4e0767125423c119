/** Copies of one process that waits in a queue: they have one session and one place in common. */
import { expect, test } from 'vitest';
import type { Term } from '../../src/index.ts';
import type { Place } from '../../src/mechanisms/queue/store.ts';
import { inCopies } from '../support/copies.ts';
import { Contestant, timing } from './contestant.ts';
import { blank } from './not-for-it.ts';
import { Stage, waitMs } from './support.ts';

/** Another leader, and two copies of one candidate at the one place behind it. */
async function twoCopies() {
  const stage = new Stage();
  const before = stage.candidate('before');
  const old = await stage.soon(before.election.campaign());
  const session = stage.store.connect();
  const backend = inCopies(session.backend, { incarnation: 'copied', guid: 'copied' });
  const elections = [1, 2].map(() => stage.elect(session, 'a', { backend }));
  const terms: Term<bigint>[] = [];
  const fenced: bigint[] = [];
  for (const election of elections) {
    const leading = election.lead(
      async (term) => {
        terms.push(term);
        await new Promise((resolve) => {
          term.signal.addEventListener('abort', resolve, { once: true });
        });
      },
      { onUnclean: ({ token }) => void fenced.push(token) },
    );
    leading.catch(() => {});
  }
  await stage.clock.advance(100);
  expect(stage.store.waiting('jobs')).toEqual(['before', 'a']);
  const close = () => Promise.all([before.election, ...elections].map((each) => each.close()));
  return { stage, before, old, session, terms, fenced, close };
}

/** @returns how many led at the same instant, at the most */
async function mostLeaders(stage: Stage, terms: readonly Term<bigint>[], ms: number) {
  let most = 0;
  for (let i = 0; i < ms / 50; i += 1) {
    await stage.clock.advance(50);
    most = Math.max(most, terms.filter((term) => term.isLeading()).length);
  }
  return most;
}

test('two copies at one place never both lead behind a leader that resigned', async () => {
  const { stage, old, terms, close } = await twoCopies();
  await old[Symbol.asyncDispose]();
  expect(await mostLeaders(stage, terms, 60_000)).toBe(1);
  // Each of them has a place of its own by then.
  expect(stage.store.waiting('jobs')).toEqual(['a', 'a']);
  await close();
});

test('two copies at one place never both lead behind a leader that died', async () => {
  const { stage, before, old, terms, fenced, close } = await twoCopies();
  before.session.outage = 'silent';
  before.session.expire({ unheard: true });
  expect(await mostLeaders(stage, terms, 60_000)).toBe(1);
  expect(fenced).toContain(old.token);
  await close();
});

test('a copy whose announcement comes second gives way, and waits for the belief of the first', async () => {
  const { stage, old, session, terms, fenced, close } = await twoCopies();
  session.hold('commit');
  await old[Symbol.asyncDispose]();
  await stage.clock.advance(100);
  // Both have been sent, neither is answered.
  expect(session.held.map(({ kind }) => kind)).toEqual(['commit', 'commit']);
  const startMs = stage.clock.monotonicMs();
  session.release('commit');
  await stage.clock.advance(1);
  expect(terms).toHaveLength(1);
  // It leads on until it finds that the other one has taken their place away.
  const [first] = terms as [Term<bigint>];
  await stage.soon(first.ended);
  while (terms.length < 2) await stage.clock.advance(10);
  expect(stage.clock.monotonicMs() - startMs).toBeGreaterThan(waitMs - 1_000);
  expect(fenced).toContain(first.token);
  await close();
});

test('a copy that finds the other one leading at their place leaves the place, and waits for its belief', async () => {
  const stage = new Stage();
  const entered: Place[] = [];
  const a = new Contestant(stage, 'a', {
    says: (store) => ({
      enter: async (entry, signal) => {
        const place = await store.enter(entry, signal);
        entered.push(place);
        if (entered.length > 1) return place;
        const { candidate } = entry;
        const holding = {
          candidate,
          place: place.name,
          electedAtUnixMs: stage.clock.wallMs(),
          leaseMs: timing.leaseMs,
          revoked: false,
          request: undefined,
          held: undefined,
        };
        // Everything is the same in a copy, but for the nonces that it draws.
        const nonce = 'of the other copy';
        const { beliefMs } = timing;
        const { name, token } = place;
        stage.store.put('jobs', { ...blank, token, place: name, nonce, beliefMs, holding });
        return place;
      },
    }),
  });
  const seat = await a.win();
  const [{ name, token }] = entered as [Place];
  expect(stage.store.places('jobs')).not.toContain(name);
  expect(seat.token).toBeGreaterThan(token);
  expect(seat.state.announced).toBe(false);
  expect(seat.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
  expect(seat.unfenced).toMatchObject([{ id: 'a', token }]);
});
