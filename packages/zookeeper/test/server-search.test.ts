// The order and the pace in which servers are tried.
import { describe, expect, it } from 'vitest';
import { Hosts } from '../src/session/hosts.ts';
import type { AttemptOutcome } from '../src/session/server-search.ts';
import { ServerSearch } from '../src/session/server-search.ts';
import { attemptMs, backoffMs, sessionTiming } from '../src/session/timing.ts';
import { TestClock } from './hostile-reading/clock.ts';

const timing = sessionTiming(30_000);
/** No shuffling: the last one is exchanged with itself. And the longest pauses. */
const random = () => 1 - Number.EPSILON;

/** Servers on the ports 1, 2, 3 and so on, and the end of each attempt there, in turn. */
function setup(count: number, ...script: readonly AttemptOutcome[]) {
  const clock = new TestClock();
  const startMs = clock.monotonicMs();
  const attempts: { readonly port: number; readonly atMs: number; readonly boundMs: number }[] = [];
  const rounds: boolean[] = [];
  const state = { isWanted: true, leftMs: Number.POSITIVE_INFINITY, lastServer: '', attemptMs: 0 };
  const names = Array.from({ length: count }, (_, index) => ({
    host: '127.0.0.1',
    port: index + 1,
  }));
  const search = new ServerSearch(new Hosts(names, random), clock, random, {
    timing,
    get leftMs() {
      return state.leftMs;
    },
    get lastServer() {
      return state.lastServer;
    },
    wantsServer: () => state.isWanted,
    async attach({ port }, boundMs) {
      attempts.push({ port, atMs: clock.monotonicMs() - startMs, boundMs });
      const outcome = script[attempts.length - 1];
      if (attempts.length >= script.length) state.isWanted = false;
      return outcome ?? 'failed';
    },
    onRoundFailed: (allShutUsOut) => rounds.push(allShutUsOut),
    onUnresolved: () => {},
  });
  const run = async () => {
    let isOver = false;
    const running = search.run().then(() => {
      isOver = true;
    });
    for (let i = 0; !isOver && i < 20_000; i += 1) {
      await new Promise(setImmediate);
      clock.stall(5);
      await clock.runDue();
    }
    await running;
    return attempts.map(({ port }) => port);
  };
  return { clock, search, attempts, rounds, state, run };
}

/** The pauses between rounds, in ms, as far as steps of 5 ms show them. */
function pausesIn(attempts: ReturnType<typeof setup>['attempts'], perRound: number) {
  const starts = attempts.filter((_, index) => index % perRound === 0).map(({ atMs }) => atMs);
  return starts.slice(1).map((atMs, index) => atMs - starts[index]!);
}

describe('a search', () => {
  it('tries one server after the other at once, and pauses after a round, longer each time', async () => {
    const { attempts, run } = setup(2, ...Array<AttemptOutcome>(8).fill('failed'));
    expect(await run()).toEqual([1, 2, 1, 2, 1, 2, 1, 2]);
    for (const index of [0, 2, 4]) expect(attempts[index + 1]!.atMs).toBe(attempts[index]!.atMs);
    for (const [round, pauseMs] of pausesIn(attempts, 2).entries()) {
      const expectedMs = backoffMs(round, false, timing, random);
      expect(pauseMs).toBeGreaterThanOrEqual(expectedMs - 5);
      expect(pauseMs).toBeLessThanOrEqual(expectedMs + 10);
    }
  });

  it('goes on at once after a server that has served, and its pauses are short again', async () => {
    const script = ['failed', 'failed', 'failed', 'served', 'failed', 'failed'] as const;
    const { attempts, rounds, run } = setup(1, ...script);
    await run();
    const pauses = pausesIn(attempts, 1);
    const [first, second, third] = [0, 1, 2].map((round) =>
      backoffMs(round, false, timing, random),
    );
    const expected = [first!, second!, third!, 0, first!];
    for (const [index, expectedMs] of expected.entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(expectedMs - 5);
      expect(pauses[index]).toBeLessThanOrEqual(expectedMs + 10);
    }
    expect(rounds).toEqual(Array(5).fill(false));
  });

  it('leaves the rest of a round alone once a server has served, and begins anew', async () => {
    const { run } = setup(3, 'failed', 'served', 'failed', 'failed', 'failed');
    expect(await run()).toEqual([1, 2, 1, 2, 3]);
  });

  it('comes to the last server at the end: the session was just lost there', async () => {
    const { state, run } = setup(3, 'failed', 'failed', 'failed');
    state.lastServer = '127.0.0.1:2';
    expect(await run()).toEqual([1, 3, 2]);
    const other = setup(3, 'failed', 'failed', 'failed');
    other.state.lastServer = '127.0.0.1:1';
    expect(await other.run()).toEqual([2, 3, 1]);
  });

  it.each<[AttemptOutcome[], boolean, boolean]>([
    [['shut-out', 'shut-out'], true, true],
    [['shut-out', 'dropped'], false, true],
    [['shut-out', 'failed'], false, true],
    [['failed', 'dropped'], false, true],
    [['failed', 'failed'], false, false],
  ])('after %j: all have shut us out (%s), and its pauses grow (%s)', async (ends, all, grows) => {
    const rounds = 8;
    const script = Array.from({ length: rounds }, () => ends).flat();
    const { attempts, rounds: told, run } = setup(2, ...script);
    await run();
    expect(told).toEqual(Array(rounds).fill(all));
    const lastMs = pausesIn(attempts, 2).at(-1)!;
    expect(lastMs > 500).toBe(grows);
  });

  it('gives each attempt its share of the time that is left, and more in each round', async () => {
    const { attempts, state, run } = setup(2, 'failed', 'failed', 'failed', 'failed');
    await run();
    const bounds = [0, 1].flatMap((round) =>
      [2, 1].map((untried) => attemptMs(timing, { hosts: 2, round, untried })),
    );
    expect(attempts.map(({ boundMs }) => boundMs)).toEqual(bounds);
    const late = setup(2, 'failed', 'failed');
    late.state.leftMs = 4_000;
    await late.run();
    expect(late.attempts.map(({ boundMs }) => boundMs)).toEqual([2_000, 4_000]);
    expect(state.isWanted).toBe(false);
  });

  it('ends when no server is wanted any more, also in the middle of a round', async () => {
    const { clock, rounds, run } = setup(3, 'failed', 'failed');
    expect(await run()).toEqual([1, 2]);
    expect(rounds).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('that is hurried ends its pause, and leaves no timer', async () => {
    const { clock, search, attempts } = setup(1, 'failed', 'failed');
    const running = search.run();
    // Without a pause there is nothing to end.
    search.hurry();
    await clock.runDue();
    await new Promise(setImmediate);
    expect([attempts.length, clock.timers]).toEqual([1, 1]);
    search.hurry();
    await running;
    expect([attempts.length, clock.timers]).toEqual([2, 0]);
  });

  it('knows of another server when it has found more than one', async () => {
    const [one, two] = [setup(1, 'failed'), setup(2, 'failed', 'failed')];
    expect(two.search.hasChoice).toBe(false);
    await one.run();
    await two.run();
    expect([one.search.hasChoice, two.search.hasChoice]).toEqual([false, true]);
  });
});
