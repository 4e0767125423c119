/** A handle meets a record that it has written itself. */
import { expect, test } from 'vitest';
import type { ElectionOptions, Term } from '../../src/index.ts';
import { NotElectedError } from '../../src/index.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate, leaseMs } from '../support/scripted-candidate.ts';
import { lost, ScriptedStore } from '../support/scripted-store.ts';

class Stage {
  readonly clock = new SimulatedClock();
  readonly store = new ScriptedStore();

  /** Advances the clock until then, within a lease. */
  async until(isSo: () => boolean): Promise<void> {
    for (let ms = 0; ms < leaseMs && !isSo(); ms += 10) await this.clock.advance(10);
    expect(isSo()).toBe(true);
  }

  /** A candidate that a test can cut off from the store. */
  candidate(id: string, options: Partial<ElectionOptions<bigint>> = {}) {
    const line = { isCut: false };
    const { read, swap } = this.store.open();
    const reach = () => {
      if (line.isCut) throw new Error('cut off');
    };
    const says = {
      read: async (signal: AbortSignal) => {
        reach();
        return read(signal);
      },
      swap: async (...args: Parameters<typeof swap>) => {
        reach();
        return swap(...args);
      },
    };
    const election = candidate(this.store, this.clock, says, { candidate: { id }, ...options });
    return { line, election };
  }

  /** Leads until it loses the term, and campaigns again. */
  leader(id: string) {
    const { line, election } = this.candidate(id);
    const terms: Term<bigint>[] = [];
    const stop = new AbortController();
    const leading = election.lead(
      (term) => {
        terms.push(term);
        return new Promise<void>((resolve) => {
          term.signal.addEventListener('abort', () => resolve());
        });
      },
      { signal: stop.signal },
    );
    leading.catch(() => {});
    return {
      line,
      terms,
      isLeading: () => terms.at(-1)?.isLeading() === true,
      end: async () => {
        stop.abort();
        await election.close();
      },
    };
  }
}

test('a store that is set back shows a leader its own renewal: it waits as all others do', async () => {
  const stage = new Stage();
  const { clock, store } = stage;
  const a = stage.leader('a');
  await clock.advance(100);
  const b = stage.leader('b');
  await clock.advance(6_900);
  const renewal = store.record;
  expect(renewal?.holding?.candidate.id).toBe('a');
  a.line.isCut = true;
  await clock.advance(20_000);
  expect(store.record).toMatchObject({ token: 2n, holding: { candidate: { id: 'b' } } });
  expect(b.isLeading()).toBe(true);
  // Just after a renewal of b, so that b does not find out for as long as can be.
  const renewed = store.swaps;
  await stage.until(() => store.swaps > renewed);
  store.record = renewal;
  store.version += 1;
  a.line.isCut = false;
  for (let ms = 0; ms < leaseMs; ms += 100) {
    await clock.advance(100);
    expect([a, b].filter((one) => one.isLeading()).length).toBeLessThan(2);
  }
  // A candidate leads again.
  await clock.advance(2 * leaseMs);
  expect([a, b].filter((one) => one.isLeading())).toHaveLength(1);
  const ended = [a.end(), b.end()];
  await clock.advance(leaseMs);
  await Promise.all(ended);
});

test('a renewal without an answer that comes back after its belief is waited out as well', async () => {
  const stage = new Stage();
  const { clock, store } = stage;
  const a = stage.leader('a');
  await clock.advance(100);
  const b = stage.leader('b');
  await clock.advance(5_000);
  // The next renewal of a lands, and its answer is lost.
  store.onSwap = async (apply) => {
    apply();
    a.line.isCut = true;
    return lost();
  };
  await stage.until(() => a.line.isCut);
  store.onSwap = async (apply) => apply();
  const renewal = store.record;
  await clock.advance(20_000);
  expect(b.isLeading()).toBe(true);
  const renewed = store.swaps;
  await stage.until(() => store.swaps > renewed);
  store.record = renewal;
  store.version += 1;
  a.line.isCut = false;
  for (let ms = 0; ms < leaseMs; ms += 100) {
    await clock.advance(100);
    expect([a, b].filter((one) => one.isLeading()).length).toBeLessThan(2);
  }
  const ended = [a.end(), b.end()];
  await clock.advance(3 * leaseMs);
  await Promise.all(ended);
});

test('a winning write that lands late is taken at once by the candidate that has sent it', async () => {
  const stage = new Stage();
  const { store } = stage;
  const { election } = stage.candidate('a');
  let land = () => {};
  store.onSwap = (apply) => {
    land = () => void apply();
    store.onSwap = async (applyNext) => applyNext();
    return lost();
  };
  const campaign = election.campaign();
  // A look, and the look after the write.
  await stage.until(() => store.reads === 2);
  expect(store.record).toBeUndefined();
  land();
  await stage.until(() => store.record?.token === 2n);
  const term = await campaign;
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('a job whose holder lost the store stays held, for the same handle too', async () => {
  const stage = new Stage();
  const { clock, store } = stage;
  const a = stage.candidate('a');
  const ran: string[] = [];
  const job = async () => void ran.push('a');
  const first = a.election.lead(job, { wait: 0, holdAtLeast: '1h' });
  await clock.advance(4_000);
  expect(store.record?.holding?.held).toBeDefined();
  a.line.isCut = true;
  await clock.advance(60_000);
  await first;
  a.line.isCut = false;
  const again = a.election.lead(job, { wait: 0, holdAtLeast: '1h' });
  const refused = expect(again).rejects.toThrow('has done its work and holds the seat until');
  await clock.advance(30_000);
  await refused;
  // The lease is over by then, the hold is not.
  const third = a.election.lead(job, { wait: 0, holdAtLeast: '1h' });
  const refusedAgain = expect(third).rejects.toBeInstanceOf(NotElectedError);
  await clock.advance(30_000);
  await refusedAgain;
  expect(ran).toEqual(['a']);
  await clock.advance(3_600_000);
  const last = a.election.lead(job, { wait: 0 });
  await clock.advance(30_000);
  await last;
  expect(ran).toEqual(['a', 'a']);
  await a.election.close();
});

test('a hold that was written without an answer is kept by its own handle', async () => {
  const stage = new Stage();
  const { clock, store } = stage;
  const a = stage.candidate('a', { operationTimeout: '300ms' });
  const ran: string[] = [];
  const job = async () => {
    ran.push('a');
    await new Promise<void>((resolve) => clock.setTimer(resolve, 1_900));
  };
  // The write that says that the work is done lands, and the store goes away.
  store.onSwap = async (apply, next) => {
    const result = apply();
    if (next.holding?.held === undefined) return result;
    a.line.isCut = true;
    return lost();
  };
  let isOver = false;
  const first = a.election.lead(job, { wait: 0, holdAtLeast: '1h' }).finally(() => {
    isOver = true;
  });
  await stage.until(() => a.line.isCut);
  await stage.until(() => isOver);
  await first;
  // It could have been believed in until now, and its lease still runs.
  expect(clock.monotonicMs()).toBeLessThan(9_900);
  a.line.isCut = false;
  store.onSwap = async (apply) => apply();
  const again = a.election.lead(job, { wait: 0, holdAtLeast: '1h' });
  const refused = expect(again).rejects.toBeInstanceOf(NotElectedError);
  await clock.advance(30_000);
  await refused;
  expect(ran).toEqual(['a']);
  await a.election.close();
});
