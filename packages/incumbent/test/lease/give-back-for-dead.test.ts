/** The record after a witness has given back the lease of a leader that it saw die. */
import { describe, expect, test } from 'vitest';
import { StoreUnavailableError, StoreUnsuitableError } from '../../src/base/errors.ts';
import { resolveTiming } from '../../src/base/timing.ts';
import type { DeadLeader, Scope } from '../../src/core/contest.ts';
import { SeatTeller } from '../../src/core/seat-identity.ts';
import { giveBackForDead } from '../../src/mechanisms/give-back-for-dead.ts';
import type { LeaseRecord } from '../../src/record/lease-record.ts';
import { emptyLeaseRecord } from '../../src/record/lease-record.ts';
import { releasedForDead } from '../../src/record/transitions.ts';
import { SimulatedClock } from '../../src/testing/index.ts';

const wallMs = 1_000_000;
const candidate = { id: 'a', incarnation: 'i', addresses: ['a:1'], metadata: {} };
const other = { id: 'z', incarnation: 'j', addresses: [], metadata: {}, token: 2n };

function held(more: Partial<NonNullable<LeaseRecord['holding']>> = {}): LeaseRecord {
  const holding = {
    ...{ candidate, electedAtUnixMs: wallMs - 60_000, announced: true, actors: null },
    ...{ revoked: false, request: undefined },
    ...more,
  };
  const drains = [{ id: 'b', untilUnixMs: wallMs + 5_000 }];
  const record = { ...emptyLeaseRecord('jobs', 'n', 15_000), token: 3n, holding, drains };
  return holding.announced ? record : { ...record, unfenced: [other] };
}

const writing = { nonce: 'w', wallMs };
const give = (record: LeaseRecord, hasWorkEnded = true) =>
  releasedForDead(record, hasWorkEnded, writing);

describe('a seat that is given back for the dead', () => {
  test('is vacant, with its term in the history as clean, and what operators wrote', () => {
    const next = give({ ...held(), ended: true });
    expect(next).toMatchObject({ token: 3n, nonce: 'w', ended: true, unfenced: [] });
    expect(next.holding).toBeUndefined();
    expect(next.reservation).toBeUndefined();
    expect(next.drains).toEqual(held().drains);
    expect(next.history).toEqual([
      {
        ...{ token: 3n, id: 'a', incarnation: 'i', why: 'work-failed' },
        ...{ fromUnixMs: wallMs - 60_000, toUnixMs: wallMs },
      },
    ]);
  });

  test('is to be fenced when its work may live', () => {
    const next = give(held(), false);
    expect(next.holding).toBeUndefined();
    expect(next.unfenced).toEqual([{ ...candidate, token: 3n }]);
    expect(next.history.map(({ why }) => why)).toEqual(['unclean']);
  });

  test.each([true, false])(
    'that had not led yet leaves the leaders before it to be fenced (%s)',
    (hasWorkEnded) => {
      const next = give(held({ announced: false }), hasWorkEnded);
      expect(next.holding).toBeUndefined();
      expect(next.unfenced).toEqual([other]);
      expect(next.history).toEqual([]);
    },
  );

  test('stays closed for the rest of its hold', () => {
    const hold = { ms: 30_000, untilUnixMs: wallMs + 20_000 };
    for (const hasWorkEnded of [true, false]) {
      expect(give(held({ held: hold }), hasWorkEnded).reservation).toEqual({
        ...{ for: undefined, reserveMs: 20_000, untilUnixMs: hold.untilUnixMs },
      });
    }
    // Over, or lifted by an operator's force.
    const over = { ms: 30_000, untilUnixMs: wallMs - 1 };
    expect(give(held({ held: over })).reservation).toBeUndefined();
    expect(give(held({ held: hold, revoked: true })).reservation).toBeUndefined();
  });
});

describe('what a witness is told', () => {
  const setUp = () => {
    const told: unknown[] = [];
    const errors: unknown[] = [];
    const teller = new SeatTeller(
      candidate,
      (seat) => told.push(seat),
      (error) => errors.push(error),
    );
    return { told, errors, teller };
  };

  test('the writes of one term, the last of them', () => {
    const { told, teller } = setUp();
    for (let i = 1; i <= 40; i += 1) teller.onWrite({ token: 5n, nonce: `n${i}` });
    const last = told.at(-1) as { readonly nonces: readonly string[] };
    expect(last).toMatchObject({ id: 'a', incarnation: 'i', token: '5' });
    expect([last.nonces.length, last.nonces[0], last.nonces.at(-1)]).toEqual([32, 'n9', 'n40']);
    teller.onWrite({ token: 6n, nonce: 'm' });
    expect(told.at(-1)).toMatchObject({ token: '6', nonces: ['m'] });
  });

  test('that the term is over, once', () => {
    const { told, teller } = setUp();
    teller.onOver();
    teller.onWrite({ token: 5n, nonce: 'n' });
    teller.onOver();
    teller.onOver();
    expect(told).toEqual([expect.objectContaining({ token: '5' }), undefined]);
  });

  test('an error of the listener is trouble, and no end', () => {
    const errors: unknown[] = [];
    const thrown = new Error('no');
    const teller = new SeatTeller(
      candidate,
      () => {
        throw thrown;
      },
      (error) => errors.push(error),
    );
    teller.onWrite({ token: 5n, nonce: 'n' });
    expect(errors).toEqual([thrown]);
  });
});

describe('a witness that gives a seat back', () => {
  const leader: DeadLeader = {
    ...{ id: 'a', incarnation: 'i', token: 3n, nonces: ['n', 'm'], hasWorkEnded: true },
  };

  /** @param answers the outcome of one write after the other. The last one stays */
  function setUp(...answers: readonly ('ok' | 'conflict' | 'gone' | Error)[]) {
    const clock = new SimulatedClock();
    const trouble: string[] = [];
    const lookedAtMs: number[] = [];
    const written: LeaseRecord[] = [];
    const stands = { record: held() as LeaseRecord | undefined };
    const stop = new AbortController();
    const scope: Scope = {
      ...{ election: 'jobs', clock, timing: resolveTiming(), random: () => 0.5 },
      ...{ uniqueId: () => `own-${written.length}`, onTrouble: (what) => trouble.push(what) },
    };
    const look = async () => {
      lookedAtMs.push(clock.monotonicMs());
      return {
        record: stands.record,
        async write(next: LeaseRecord) {
          const answer = answers[Math.min(written.length, answers.length - 1)];
          written.push(next);
          if (answer instanceof Error) throw answer;
          return answer ?? 'ok';
        },
      };
    };
    const give = (dead = leader) => {
      const seen: { result?: boolean; error?: unknown } = {};
      giveBackForDead(scope, dead, look, stop.signal).then(
        (result) => Object.assign(seen, { result }),
        (error: unknown) => Object.assign(seen, { error }),
      );
      return seen;
    };
    return { clock, scope, trouble, lookedAtMs, written, stands, stop, give };
  }

  const away = new StoreUnavailableError('away');

  test.each<Partial<DeadLeader>>([
    { id: 'b' },
    { incarnation: 'j' },
    { token: 2n },
    { nonces: ['m'] },
  ])('leaves a record alone that is not of its term: %o', async (other) => {
    const { clock, written, give } = setUp('ok');
    const seen = give({ ...leader, ...other });
    await clock.advance(0);
    expect([seen, written]).toEqual([{ result: false }, []]);
  });

  test('leaves a vacant seat alone, and one without a record', async () => {
    const { clock, written, stands, give } = setUp('ok');
    stands.record = { ...held(), holding: undefined };
    const vacant = give();
    await clock.advance(0);
    stands.record = undefined;
    const none = give();
    await clock.advance(0);
    expect([vacant, none, written]).toEqual([{ result: false }, { result: false }, []]);
  });

  test('tries five times where others write faster, at once and each time under another name', async () => {
    const { clock, trouble, lookedAtMs, written, give } = setUp('conflict');
    const seen = give();
    await clock.advance(0);
    expect(seen).toEqual({ result: false });
    expect(lookedAtMs).toEqual([0, 0, 0, 0, 0]);
    expect(new Set(written.map(({ nonce }) => nonce)).size).toBe(5);
    expect(trouble).toEqual([]);
  });

  test('tries five times where the store does not answer, with pauses, and then says why not', async () => {
    const { clock, scope, trouble, lookedAtMs, give } = setUp(away);
    const seen = give();
    const { retryBackoffMs } = scope.timing;
    for (let ms = 0; ms < 6 * retryBackoffMs; ms += 10) await clock.advance(10);
    expect(seen).toEqual({ error: away });
    expect(lookedAtMs).toEqual([0, 1, 2, 3, 4].map((tries) => tries * retryBackoffMs));
    expect(trouble).toEqual(Array(4).fill('giving back the seat of a dead leader'));
  });

  test('finds its write that had no answer by its name, and writes no other', async () => {
    const { clock, written, stands, give } = setUp(away);
    const seen = give();
    await clock.advance(0);
    stands.record = written[0];
    await clock.advance(60_000);
    expect(seen).toEqual({ result: true });
    expect(written).toHaveLength(1);
  });

  test('does not write again where the place of the dead has gone', async () => {
    const { clock, lookedAtMs, written, give } = setUp('gone');
    const seen = give();
    await clock.advance(0);
    expect(seen).toEqual({ result: false });
    expect([lookedAtMs.length, written.length]).toEqual([2, 1]);
  });

  test('does not try again what waiting cannot cure, or nobody wants any more', async () => {
    const unsuitable = new StoreUnsuitableError('no right to write');
    const refused = setUp(unsuitable);
    const first = refused.give();
    await refused.clock.advance(0);
    expect([first, refused.trouble]).toEqual([{ error: unsuitable }, []]);
    const stopped = setUp(away);
    const second = stopped.give();
    await stopped.clock.advance(0);
    stopped.stop.abort(new Error('enough'));
    await stopped.clock.advance(60_000);
    expect(second).toEqual({ error: stopped.stop.signal.reason });
    expect(stopped.written).toHaveLength(1);
  });
});
