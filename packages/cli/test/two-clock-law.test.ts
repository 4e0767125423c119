import { createRequire } from 'node:module';
import fc from 'fast-check';
import type { Deadline, Instant } from 'incumbent';
import { Countdown, deadlineAfter } from 'incumbent';
import { expect, test } from 'vitest';
import { countdownSource } from '../../incumbent/src/core/watchdog.ts';

// The law stands in the library and, without imports, in the worker of the watchdog and in the guard.
// All copies see the same clocks here, beside the true time.

interface Judge {
  set(deadline: Deadline): void;
  look(now: Instant): number;
}
const guard = createRequire(import.meta.url)('../guard/guard.cjs') as {
  Countdown: new () => Judge;
};
const watchdog = {
  Countdown: new Function(`${countdownSource} return Countdown;`)() as new () => Judge,
};

const beliefMs = 12_000;
const drift = 0.05;
/** A difference of the clocks that does not count as lost. */
const roundingMs = 5;
/** The wall clock is rounded down. */
const resolutionMs = 1;

/** A host whose two clocks each fail in their own way. */
class Host {
  trueMs = 0;
  /** Since the last look. */
  wasSuspended = false;
  wasSetBack = false;
  readonly #monotonicRate: number;
  readonly #wallRate: number;
  #monotonicMs = 1_000_000;
  #wallMs = 1_700_000_000_000.3;

  constructor(monotonicRate: number, wallRate: number) {
    this.#monotonicRate = monotonicRate;
    this.#wallRate = wallRate;
  }

  read(): Instant {
    return { monotonicMs: this.#monotonicMs, wallMs: Math.floor(this.#wallMs) };
  }

  pass(ms: number): void {
    this.trueMs += ms;
    this.#monotonicMs += ms * this.#monotonicRate;
    this.#wallMs += ms * this.#wallRate;
  }

  suspend(ms: number): void {
    this.wasSuspended = true;
    this.trueMs += ms;
    this.#wallMs += ms * this.#wallRate;
  }

  stepWall(ms: number): void {
    if (ms < 0) this.wasSetBack = true;
    this.#wallMs += ms;
  }
}

type Happening =
  | { readonly what: 'pass' | 'suspend'; readonly ms: number }
  | { readonly what: 'step'; readonly ms: number }
  /** `stallMs`: between reading the clocks and sending. */
  | { readonly what: 'send'; readonly stallMs: number }
  | { readonly what: 'look' | 'reply' };

const span = fc.oneof(
  fc.double({ min: 0.01, max: 3, noNaN: true }),
  fc.double({ min: 3, max: 9_000, noNaN: true }),
  // So that one failure of a clock makes up for another.
  fc.constantFrom(1_000, 4_000),
);
const happenings = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ what: fc.constant('pass' as const), ms: span }) },
    { weight: 1, arbitrary: fc.record({ what: fc.constant('suspend' as const), ms: span }) },
    {
      weight: 1,
      arbitrary: fc.record({ what: fc.constant('step' as const), ms: span.map((ms) => -ms) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ what: fc.constant('step' as const), ms: span }),
    },
    { weight: 4, arbitrary: fc.record({ what: fc.constant('look' as const) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        what: fc.constant('send' as const),
        stallMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: span }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ what: fc.constant('reply' as const) }) },
  ),
  { minLength: 5, maxLength: 60 },
);
const rate = fc.constantFrom(1, 1 - drift, 1 + drift);

interface Sent {
  readonly at: Instant;
  readonly trueMs: number;
  readonly stallMs: number;
  /** The clock faults since then. */
  setBacks: number;
  forwardMs: number;
  failures: number;
}

interface Look {
  readonly leftMs: number;
  readonly trueMs: number;
  readonly sent: Sent;
  /** By judges that get the deadline from another judge, and look when it looks. */
  readonly told: readonly number[];
  readonly copies: readonly number[];
  /** By a judge that looks more rarely: not when a reply arrives. */
  readonly lazy: number;
}

/**
 * Lets it happen. A look comes before a clock would fail in the second way since the last one: what
 * happens between two looks is not covered.
 */
function* run(host: Host, events: readonly Happening[]): Generator<Look, void, void> {
  const law = new Countdown();
  const copies = [new watchdog.Countdown(), new guard.Countdown()];
  // Are told what the first one knows, as guard and watchdog are, and look as well.
  const told = [new Countdown(), new watchdog.Countdown(), new guard.Countdown()];
  const lazy = new Countdown();
  const send = (stallMs: number): Sent => {
    const { monotonicMs } = host.read();
    host.pass(stallMs);
    const at = { monotonicMs, wallMs: host.read().wallMs };
    return { at, trueMs: host.trueMs, stallMs, setBacks: 0, forwardMs: 0, failures: 0 };
  };
  let sent = send(0);
  /** The request that the deadline counts from. */
  let counted = sent;
  const set = () => {
    for (const judge of [law, lazy, ...copies]) judge.set(deadlineAfter(sent.at, beliefMs));
    for (const judge of told) judge.set(law.deadline!);
    counted = sent;
  };
  const look = (isAsked = true): Look => {
    const now = host.read();
    host.wasSetBack = false;
    host.wasSuspended = false;
    const leftMs = law.look(now);
    return {
      leftMs,
      trueMs: host.trueMs,
      sent: counted,
      told: told.map((judge) => judge.look(now)),
      copies: copies.map((judge) => judge.look(now)),
      lazy: isAsked ? lazy.look(now) : beliefMs,
    };
  };
  set();
  for (const event of events) {
    // No two things happen in the same instant.
    host.pass(0.001);
    switch (event.what) {
      case 'pass':
        host.pass(event.ms);
        break;
      case 'suspend':
        if (host.wasSetBack) yield look();
        host.suspend(event.ms);
        for (const each of new Set([sent, counted])) each.failures += 1;
        break;
      case 'step':
        if (event.ms < 0 && host.wasSuspended) yield look();
        host.stepWall(event.ms);
        for (const each of new Set([sent, counted])) {
          each.failures += 1;
          if (event.ms < 0) each.setBacks += 1;
          else each.forwardMs += event.ms;
        }
        break;
      case 'look':
        yield look();
        break;
      case 'send':
        sent = send(event.stallMs);
        break;
      case 'reply': {
        const seen = look(false);
        yield seen;
        if (seen.leftMs <= 0) return;
        if (sent.at.monotonicMs > counted.at.monotonicMs) set();
        yield look(false);
        break;
      }
      default:
        event satisfies never;
    }
  }
  yield look();
}

test('all copies of the two-clock law say the same', () => {
  fc.assert(
    fc.property(rate, rate, happenings, (monotonicRate, wallRate, events) => {
      for (const { leftMs, copies } of run(new Host(monotonicRate, wallRate), events)) {
        if (!copies.every((each) => each === leftMs)) expect(copies).toEqual([leftMs, leftMs]);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('nobody believes for longer than the belief, whatever the clocks do between the looks', () => {
  fc.assert(
    fc.property(rate, rate, happenings, (monotonicRate, wallRate, events) => {
      for (const { leftMs, told, trueMs, sent } of run(new Host(monotonicRate, wallRate), events)) {
        // Each step back of a clock can hide a loss of `roundingMs`, which is too small to count.
        const hiddenMs = roundingMs * sent.setBacks + resolutionMs;
        const mostMs = (beliefMs + hiddenMs) / (1 - drift);
        if (Math.max(leftMs, ...told) > 0) expect(trueMs - sent.trueMs).toBeLessThan(mostMs);
      }
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  [5, 'no more than rounding: the clock that is set back makes up for it', 0],
  [6, 'lost for good', 6],
])('a wall clock that is %i ms ahead of the other is %s', (aheadMs, _, lostMs) => {
  for (const judge of [new Countdown(), new watchdog.Countdown(), new guard.Countdown()]) {
    judge.set(deadlineAfter({ monotonicMs: 0, wallMs: 100_000 }, beliefMs));
    const leftMs = beliefMs - 1_000;
    expect(judge.look({ monotonicMs: 1_000, wallMs: 101_000 + aheadMs })).toBe(leftMs - aheadMs);
    expect(judge.look({ monotonicMs: 1_000, wallMs: 101_000 })).toBe(leftMs - lostMs);
  }
});

test('nothing is lost twice: not to many looks, nor to two judges that look together', () => {
  fc.assert(
    fc.property(happenings, (events) => {
      for (const { leftMs, lazy, told, trueMs, sent } of run(new Host(1, 1), events)) {
        const passedMs = trueMs - sent.trueMs + sent.stallMs + sent.forwardMs;
        // Each failure of a clock may be rounded up.
        const roundedMs = roundingMs + resolutionMs * (2 + sent.failures);
        expect(Math.min(leftMs, lazy)).toBeGreaterThan(beliefMs - passedMs - roundedMs);
        for (const each of told) expect(Math.abs(each - leftMs)).toBeLessThan(roundedMs);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('a deadline that is over stays over, however the clocks are rounded', () => {
  const millisecond = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      rate,
      rate,
      millisecond,
      millisecond,
      (monotonicRate, wallRate, aheadMs, stepMs) => {
        const host = new Host(monotonicRate, wallRate);
        host.pass(aheadMs);
        const law = new Countdown();
        law.set(deadlineAfter(host.read(), beliefMs));
        host.pass(beliefMs / Math.max(monotonicRate, wallRate) - 2);
        let isOver = false;
        for (let looks = 0; looks < 400; looks += 1) {
          host.pass(0.001 + stepMs / 50);
          const leftMs = law.look(host.read());
          if (isOver && leftMs > 0) expect(leftMs).toBeLessThanOrEqual(0);
          isOver = leftMs <= 0;
        }
      },
    ),
    { numRuns: 300 },
  );
});
