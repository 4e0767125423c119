/** A witness gives back the place of a leader that it saw die. */
import { expect, test } from 'vitest';
import { giveBackSeat } from '../../src/core/give-back-seat.ts';
import type { SeatIdentity } from '../../src/core/seat-identity.ts';
import type { Term } from '../../src/index.ts';
import { Stage, waitMs } from './support.ts';

const { signal } = new AbortController();

/** A leads, B waits, and a witness has a session of its own. */
async function stageWithWitness() {
  const stage = new Stage();
  const [a, b] = [stage.candidate('a'), stage.candidate('b')];
  const told: (SeatIdentity | undefined)[] = [];
  const first = await stage.soon(a.election.campaign({ onSeat: (seat) => told.push(seat) }));
  const fenced: bigint[] = [];
  const following: Promise<Term<bigint>> = b.election.campaign({
    onUnclean: ({ token }) => void fenced.push(token),
  });
  await stage.clock.advance(100);
  const { clock } = stage;
  const witness = stage.store.connect();
  const giveBack = (seat: SeatIdentity, hasWorkEnded = true) => {
    const { backend } = witness;
    return giveBackSeat({ name: 'jobs', backend, clock, seat, hasWorkEnded, signal });
  };
  const seat = () => told.at(-1) as SeatIdentity;
  const close = () => Promise.all([a.election.close(), b.election.close()]);
  return { stage, a, b, told, first, fenced, following, witness, giveBack, seat, close };
}

/** Nothing of it is sent or heard any more, and its session lives on for its timeout. */
function dies({ session }: { session: { outage: string } }): void {
  session.outage = 'silent';
}

test('the successor leads at once, clean, while the session of the dead lives on', async () => {
  const { stage, a, first, fenced, following, giveBack, seat, close } = await stageWithWitness();
  dies(a);
  const startMs = stage.clock.monotonicMs();
  expect(await stage.soon(giveBack(seat()))).toBe(true);
  const second = await stage.soon(following);
  expect(stage.clock.monotonicMs() - startMs).toBeLessThan(100);
  expect(second.token).toBeGreaterThan(first.token);
  expect(second.predecessor).toMatchObject({ id: 'a', clean: true });
  expect(fenced).toEqual([]);
  expect(stage.store.waiting('jobs')).toEqual(['b']);
  await stage.soon(second[Symbol.asyncDispose]());
  await stage.soon(close());
});

test('work that may live is fenced, and its belief is not waited for', async () => {
  const { stage, a, first, fenced, following, giveBack, seat, close } = await stageWithWitness();
  dies(a);
  const startMs = stage.clock.monotonicMs();
  expect(await stage.soon(giveBack(seat(), false))).toBe(true);
  const second = await stage.soon(following);
  expect(stage.clock.monotonicMs() - startMs).toBeLessThan(200);
  expect(fenced).toEqual([first.token]);
  expect(second.predecessor?.clean).toBe(false);
  await stage.soon(second[Symbol.asyncDispose]());
  await stage.soon(close());
});

test('a place that has gone is left alone: its successor waits by that very record', async () => {
  const { stage, a, b, fenced, first, following, giveBack, seat, close } = await stageWithWitness();
  dies(a);
  a.session.expire({ unheard: true });
  const goneMs = stage.clock.monotonicMs();
  await stage.clock.advance(100);
  expect(await stage.soon(giveBack(seat()))).toBe(false);
  const second = await stage.soon(following);
  expect(stage.clock.monotonicMs() - goneMs).toBeGreaterThanOrEqual(waitMs);
  expect(fenced).toEqual([first.token]);
  expect((await stage.soon(b.election.history())).map(({ why }) => why)).toEqual(['unclean']);
  await stage.soon(second[Symbol.asyncDispose]());
  await stage.soon(close());
});

test('an announcement of the dead that lands after its place was given back is refused', async () => {
  const { stage, a, first, following, giveBack, seat, close } = await stageWithWitness();
  a.session.hold('commit');
  const proclaiming = first.proclaim({ metadata: { build: '2' } });
  proclaiming.catch(() => {});
  await stage.clock.advance(100);
  // It was told before the write was sent.
  expect(seat().nonces).toHaveLength(2);
  expect(await stage.soon(giveBack(seat()))).toBe(true);
  const second = await stage.soon(following);
  a.session.release('commit');
  await stage.clock.advance(100);
  expect(second.isLeading()).toBe(true);
  expect(stage.store.waiting('jobs')).toEqual(['b']);
  await stage.soon(first[Symbol.asyncDispose]());
  await stage.soon(second[Symbol.asyncDispose]());
  await stage.soon(close());
});

test('nothing is given back for another term, candidate, incarnation or writer, nor twice', async () => {
  const { stage, a, first, following, giveBack, seat, close } = await stageWithWitness();
  const others: readonly Partial<SeatIdentity>[] = [
    { id: 'b' },
    { incarnation: 'of a copy' },
    { token: String(first.token + 1n) },
    { nonces: ['of a copy'] },
  ];
  for (const other of others) {
    expect(await stage.soon(giveBack({ ...seat(), ...other }))).toBe(false);
  }
  expect(first.isLeading()).toBe(true);
  dies(a);
  expect(await stage.soon(giveBack(seat()))).toBe(true);
  expect(await stage.soon(giveBack(seat()))).toBe(false);
  const second = await stage.soon(following);
  expect(await stage.soon(giveBack(seat()))).toBe(false);
  expect(second.isLeading()).toBe(true);
  await stage.soon(second[Symbol.asyncDispose]());
  await stage.soon(close());
});

test('a write of the witness whose answer is lost is found by its nonce', async () => {
  const { stage, a, following, witness, giveBack, seat, close } = await stageWithWitness();
  dies(a);
  witness.hold('amend');
  const giving = giveBack(seat());
  await stage.clock.advance(100);
  witness.release('amend');
  expect(await stage.soon(giving)).toBe(true);
  const next = await stage.soon(following);
  await stage.soon(next[Symbol.asyncDispose]());
  await stage.soon(close());
});

test('a witness is told of the seat until the term has ended', async () => {
  const { first, told, stage, following, close } = await stageWithWitness();
  expect(told).toHaveLength(1);
  expect(told[0]).toMatchObject({ id: 'a', token: String(first.token) });
  await stage.soon(first[Symbol.asyncDispose]());
  expect(told.slice(1)).toEqual([undefined]);
  const next = await stage.soon(following);
  await stage.soon(next[Symbol.asyncDispose]());
  await stage.soon(close());
});
