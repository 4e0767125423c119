// The rules that a record keeps after any sequence of changes, by whatever writers.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LeaseRecord } from '../src/record/lease-record.ts';
import { emptyLeaseRecord } from '../src/record/lease-record.ts';
import type { Drain, UncleanLeader } from '../src/record/record.ts';
import { drainLimit, historyLimit, unfencedLimit } from '../src/record/record.ts';
import {
  asked,
  drained,
  ended,
  historyAfter,
  opened,
  predecessorIn,
  released,
  revoked,
  takenBack,
  unfencedAfter,
  vacated,
} from '../src/record/transitions.ts';

type Step = (record: LeaseRecord, wallMs: number) => LeaseRecord;

const people = ['a', 'b', 'c'] as const;
const candidateOf = (id: string) => ({ id, incarnation: `${id}-1`, addresses: [], metadata: {} });
let writes = 0;
const nonce = () => {
  writes += 1;
  return `n${writes}`;
};

/** A candidate wins, as every mechanism writes it. */
const win =
  (id: string, announced: boolean, wasOurs: boolean): Step =>
  (record, wallMs) => ({
    ...record,
    nonce: nonce(),
    token: record.token + 1n,
    holding: {
      ...{ candidate: candidateOf(id), electedAtUnixMs: wallMs, announced, actors: null },
      ...{ revoked: false, request: undefined },
    },
    reservation: undefined,
    unfenced: unfencedAfter(record, wasOurs),
    history: historyAfter(record, wallMs),
  });

/** Its predecessors are fenced: the hooks have run. */
const announce: Step = (record) =>
  record.holding === undefined
    ? record
    : { ...record, holding: { ...record.holding, announced: true }, unfenced: [] };

const release =
  (reserveMs: number | undefined): Step =>
  (record, wallMs) => {
    const { holding, unfenced } = record;
    if (holding === undefined) return record;
    const end = { reason: 'resigned', hasLed: holding.announced, unfenced } as const;
    const times = { fromUnixMs: holding.electedAtUnixMs, toUnixMs: wallMs };
    const reserved = reserveMs === undefined ? {} : { reserveMs, reservedFor: 'b' };
    return released(
      record,
      holding.candidate,
      { ...end, ...times, ...reserved },
      { nonce: nonce(), wallMs },
    );
  };

const steps: fc.Arbitrary<readonly [name: string, step: Step]> = fc.oneof(
  fc
    .tuple(fc.constantFrom(...people), fc.boolean(), fc.boolean())
    .map(([id, announced, ours]) => ['win', win(id, announced, ours)] as const),
  fc.constant(['announce', announce] as const),
  fc.option(fc.nat(5_000)).map((ms) => ['release', release(ms ?? undefined)] as const),
  fc
    .boolean()
    .map(
      (ours) =>
        [
          'vacated',
          (record: LeaseRecord, wallMs: number) =>
            vacated(record, ours, { nonce: nonce(), wallMs }),
        ] as const,
    ),
  fc.constant(['revoked', (record: LeaseRecord) => revoked(record, nonce())] as const),
  fc.constant(['opened', (record: LeaseRecord) => opened(record)] as const),
  fc
    .constantFrom(...people)
    .map(
      (to) =>
        [
          'asked',
          (record: LeaseRecord) =>
            asked(record, { kind: 'transfer', to, nonce: nonce() }) ?? record,
        ] as const,
    ),
  fc
    .boolean()
    .map((is) => ['ended', (record: LeaseRecord) => ended(record, is) ?? record] as const),
  fc
    .tuple(fc.constantFrom(...people), fc.integer({ min: -10, max: 1_000_000 }))
    .map(
      ([id, forMs]) =>
        [
          'drained',
          (record: LeaseRecord, wallMs: number) =>
            drained(record, { id, untilUnixMs: wallMs + forMs }, wallMs) ?? record,
        ] as const,
    ),
);

/** Plays them one after the other, a second apart, and shows each change. */
function everyChange(
  script: readonly (readonly [string, Step])[],
  check: (before: LeaseRecord, after: LeaseRecord, name: string, wallMs: number) => void,
): void {
  let record = emptyLeaseRecord('e', nonce(), 1_000);
  script.forEach(([name, step], index) => {
    const wallMs = 1_000_000 + index * 1_000;
    const after = step(record, wallMs);
    check(record, after, name, wallMs);
    record = after;
  });
}

const holds = (check: Parameters<typeof everyChange>[1]) =>
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 120 }), (script) => everyChange(script, check)),
    { numRuns: 300 },
  );

const isIn = (list: readonly UncleanLeader[], { token, incarnation }: UncleanLeader) =>
  list.some((each) => each.token === token && each.incarnation === incarnation);

describe('whatever is changed', () => {
  it('the token never falls, and only a win makes another one', () => {
    holds((before, after, name) => {
      expect(after.token >= before.token).toBe(true);
      if (name !== 'win') expect(after.token).toBe(before.token);
    });
  });

  it('a leader to be fenced is forgotten by a fence alone, or when there are more than are kept', () => {
    holds((before, after, name) => {
      if (name === 'announce' || before.unfenced.length >= unfencedLimit) return;
      for (const leader of before.unfenced) expect(isIn(after.unfenced, leader)).toBe(true);
    });
  });

  it('a leader that is replaced, and was not known to be over, is to be fenced', () => {
    const replaced = (before: LeaseRecord, after: LeaseRecord) => {
      const { holding, token } = before;
      if (holding?.announced !== true) return;
      expect(isIn(after.unfenced, { ...holding.candidate, token })).toBe(true);
      expect(after.history.at(-1)).toMatchObject({ token, why: 'unclean' });
    };
    holds((before, _after, _name, wallMs) => {
      replaced(before, win('c', false, false)(before, wallMs));
      replaced(before, vacated(before, false, { nonce: 'n', wallMs }));
    });
  });

  it('a drain survives every hand-over until it is over', () => {
    holds((before, after, name, wallMs) => {
      if (name === 'drained') return;
      const counts = ({ untilUnixMs }: Drain) => untilUnixMs > wallMs;
      expect(after.drains.filter(counts)).toEqual(before.drains.filter(counts));
    });
  });

  it('no more is kept than may be: 50 terms, 20 to be fenced, 100 drains', () => {
    holds((_before, after) => {
      expect(after.history.length).toBeLessThanOrEqual(historyLimit);
      expect(after.unfenced.length).toBeLessThanOrEqual(unfencedLimit);
      expect(after.drains.length).toBeLessThanOrEqual(drainLimit);
    });
  });

  it('operators leave the leader on record, with all that its own writes are found by', () => {
    holds((before, after, name) => {
      if (!['asked', 'revoked', 'opened', 'ended', 'drained'].includes(name)) return;
      expect(after.nonce).toBe(before.nonce);
      expect(after.history).toEqual(before.history);
      expect(after.holding?.candidate).toEqual(before.holding?.candidate);
      expect(after.holding?.electedAtUnixMs).toBe(before.holding?.electedAtUnixMs);
    });
  });

  it('the history grows by one term that has led, or not at all', () => {
    holds((before, after) => {
      const known = new Set(before.history);
      const more = after.history.filter((term) => !known.has(term));
      expect(more.length).toBeLessThanOrEqual(1);
      for (const { token } of more) expect(token).toBe(before.token);
      if (more.length === 1) expect(before.holding?.announced).toBe(true);
    });
  });

  it('the last leader is told to the next winner, and whether that end was said', () => {
    holds((before) => {
      const last = predecessorIn(before, false);
      const led = before.holding?.announced === true;
      const end = before.history.at(-1);
      if (led) expect(last).toMatchObject({ token: before.token, clean: false });
      else if (end === undefined) expect(last).toBeUndefined();
      else expect(last).toMatchObject({ token: end.token, clean: end.why !== 'unclean' });
    });
  });
});

describe('a win that is taken back', () => {
  it('leaves the leaders to fence and the reservation as before, and keeps its token', () => {
    holds((before, _after, _name, wallMs) => {
      const landed = win('c', false, false)(before, wallMs);
      const after = takenBack(landed, before, false, 'n');
      expect(after.holding).toBeUndefined();
      expect(after.reservation).toEqual(before.reservation);
      expect(after.unfenced).toEqual(unfencedAfter(before, false));
      expect(after.token).toBe(landed.token);
    });
  });

  it('of the first term there is nobody before', () => {
    const landed = win('a', true, false)(emptyLeaseRecord('e', 'n', 1_000), 5);
    expect(takenBack(landed, undefined, false, 'm')).toMatchObject({ nonce: 'm', unfenced: [] });
  });
});

describe('a leader that goes in order', () => {
  const led = win('a', true, false)(emptyLeaseRecord('e', 'n', 1_000), 5_000);
  const end = {
    reason: 'resigned',
    hasLed: true,
    fromUnixMs: 5_000,
    toUnixMs: 9_000,
    unfenced: [],
  } as const;

  it('reserves the seat for the candidate that it names', () => {
    const after = released(
      led,
      candidateOf('a'),
      { ...end, reserveMs: 700, reservedFor: 'b' },
      { nonce: 'm', wallMs: 9_000 },
    );
    expect(after.reservation).toEqual({ for: 'b', reserveMs: 700, untilUnixMs: 9_700 });
  });

  it('reserves nothing when an operator has taken the seat by force', () => {
    const after = released(
      revoked(led, 'r'),
      candidateOf('a'),
      { ...end, reserveMs: 700 },
      { nonce: 'm', wallMs: 9_000 },
    );
    expect(after.reservation).toBeUndefined();
  });

  it('is not in the history when its term never began', () => {
    const after = released(
      led,
      candidateOf('a'),
      { ...end, hasLed: false },
      { nonce: 'm', wallMs: 9_000 },
    );
    expect(after.history).toEqual([]);
  });
});

describe('a fact that stands there already is not written again', () => {
  const led = win('a', true, false)(emptyLeaseRecord('e', 'n', 1_000), 5_000);

  it('a transfer to the same candidate; one to another is', () => {
    const once = asked(led, { kind: 'transfer', to: 'b', nonce: '1' });
    expect(once && asked(once, { kind: 'transfer', to: 'b', nonce: '2' })).toBeUndefined();
    expect(once && asked(once, { kind: 'transfer', to: 'c', nonce: '2' })).toBeDefined();
  });

  it('a drain until the same time, and one that is lifted and was none', () => {
    const once = drained(led, { id: 'b', untilUnixMs: 9_000 }, 5_000);
    expect(once && drained(once, { id: 'b', untilUnixMs: 9_000 }, 5_000)).toBeUndefined();
    expect(drained(led, { id: 'b', untilUnixMs: 5_000 }, 5_000)).toBeUndefined();
    expect(once && drained(once, { id: 'b', untilUnixMs: 5_000 }, 5_000)?.drains).toEqual([]);
  });

  it('an end of an election that has ended', () => {
    expect(ended({ ...led, ended: true }, true)).toBeUndefined();
    expect(ended(led, false)).toBeUndefined();
  });

  it('a request where nobody leads', () => {
    expect(asked({ ...led, holding: undefined }, { kind: 'vacate', nonce: '1' })).toBeUndefined();
  });
});

it('of drains that count there are a hundred at most: one more is refused', () => {
  const empty = emptyLeaseRecord('e', 'n', 1_000);
  const drains = Array.from({ length: drainLimit }, (_, i) => ({
    id: `c${i}`,
    untilUnixMs: 9_000,
  }));
  expect(() => drained({ ...empty, drains }, { id: 'more', untilUnixMs: 9_000 }, 5_000)).toThrow(
    'election "e" has 100 drained candidates already',
  );
});
