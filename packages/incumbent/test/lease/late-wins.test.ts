/** A win without an answer is taken back before its candidate says that it is not elected. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ElectionOptions, View } from '../../src/index.ts';
import { createElection, NotElectedError } from '../../src/index.ts';
import type { SimulatedConnection } from '../../src/testing/index.ts';
import { SimulatedClock, SimulatedLeaseStore } from '../../src/testing/index.ts';

const leaseMs = 15_000;
/** An operation times out after 2.5 s: by then its request is still on its way. */
const late = { requestMs: 4_000 };

class Stage {
  readonly clock = new SimulatedClock();
  readonly store = new SimulatedLeaseStore({ clock: this.clock });

  candidate(id: string, options: Partial<ElectionOptions<bigint>> = {}) {
    const connection = this.store.connect();
    return { connection, election: this.elect(connection, id, options) };
  }

  elect(connection: SimulatedConnection, id: string, rest: Partial<ElectionOptions<bigint>> = {}) {
    const { clock } = this;
    const common = { name: 'jobs', clock, lease: leaseMs, random: () => 0.5 };
    const { backend } = connection;
    return createElection<bigint>({ ...common, backend, candidate: { id }, ...rest });
  }

  /** All candidates that are seen to lead from now on. */
  watch(): readonly string[] {
    const seen: string[] = [];
    const views = this.candidate('observer').election.observe();
    const look = async () => {
      for await (const { state, leader } of views as AsyncIterable<View>) {
        if (state === 'led' && leader !== undefined) seen.push(leader.id);
      }
    };
    void look();
    onTestFinished(async () => {
      await views.return();
    });
    return seen;
  }

  /** @returns whom the next leader has to fence */
  async successor(): Promise<readonly string[]> {
    const fenced: string[] = [];
    const { election } = this.candidate('successor');
    const leading = election.lead(() => 1, { onUnclean: ({ id }) => void fenced.push(id) });
    await this.clock.advance(3 * leaseMs);
    expect(await leading).toBe(1);
    return fenced;
  }
}

/** The end of a campaign, awaited later. */
function outcome<T>(promise: Promise<T>): Promise<unknown> {
  return promise.catch((error: unknown) => error);
}

describe('a candidate that does not wait', () => {
  test('a write that is on its way cannot land any more', async () => {
    const stage = new Stage();
    const { connection, election } = stage.candidate('a');
    const seen = stage.watch();
    connection.next('swap', late);
    const tried = outcome(election.campaign({ wait: 0 }));
    await stage.clock.advance(3_000);
    expect(await tried).toBeInstanceOf(NotElectedError);
    await stage.clock.advance(60_000);
    expect(seen).toEqual([]);
    expect(stage.store.record('jobs')).toMatchObject({ token: 0n, history: [] });
    expect(await stage.successor()).toEqual([]);
    expect(seen).toEqual(['successor']);
  });

  test('a write that lands before the other one is vacated at once, and nobody is fenced for it', async () => {
    const stage = new Stage();
    const { connection, election } = stage.candidate('a');
    connection.next('read', {}, 2);
    // Read before it lands, and told after that.
    connection.next('read', { replyMs: 2_000 });
    connection.next('swap', late);
    const tried = outcome(election.campaign({ wait: 0 }));
    await stage.clock.advance(4_400);
    expect(stage.store.record('jobs')?.holding?.candidate.id).toBe('a');
    await stage.clock.advance(200);
    expect(await tried).toBeInstanceOf(NotElectedError);
    expect(stage.store.record('jobs')).toMatchObject({ token: 1n, history: [], unfenced: [] });
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
    expect(await stage.successor()).toEqual([]);
  });

  test('a store that answers again within a lease is rid of it in the background', async () => {
    const stage = new Stage();
    const { connection, election } = stage.candidate('a');
    const seen = stage.watch();
    connection.next('swap', late);
    const tried = outcome(election.campaign({ wait: 0 }));
    await stage.clock.advance(2_000);
    connection.outage = 'silent';
    await stage.clock.advance(20_000);
    expect(await tried).toBeInstanceOf(NotElectedError);
    // No other candidate can tell it from a leader that has died just after its win.
    expect(seen).toEqual(['a']);
    connection.outage = 'none';
    await stage.clock.advance(6_000);
    expect(stage.store.record('jobs')).toMatchObject({ token: 1n, history: [], unfenced: [] });
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
    expect(await stage.successor()).toEqual([]);
  });

  test('a store that stays away is left alone after a lease, and by a handle that is closed', async () => {
    for (const closes of [false, true]) {
      const stage = new Stage();
      const { connection, election } = stage.candidate('a');
      connection.next('swap', { lose: 'request' });
      const tried = outcome(election.campaign({ wait: 0 }));
      await stage.clock.advance(2_000);
      connection.outage = 'silent';
      await stage.clock.advance(20_000);
      expect(await tried).toBeInstanceOf(NotElectedError);
      if (closes) await election.close();
      else await stage.clock.advance(leaseMs + 5_000);
      const { read } = connection.sent;
      await stage.clock.advance(60_000);
      expect(connection.sent.read).toBe(read);
    }
  });

  // At one of these times the background is about to look while the answer to the next win is awaited.
  test.each(Array.from({ length: 14 }, (_, i) => 20_000 + 250 * i))(
    'a win that is taken back in the background never hits the next win of the same candidate: after %i ms',
    async (awayMs) => {
      const stage = new Stage();
      const { connection, election } = stage.candidate('a');
      connection.next('swap', late);
      const tried = outcome(election.campaign({ wait: 0 }));
      await stage.clock.advance(2_000);
      connection.outage = 'silent';
      await stage.clock.advance(awayMs);
      expect(await tried).toBeInstanceOf(NotElectedError);
      connection.outage = 'none';
      connection.next('swap', { replyMs: 2_400 });
      const winning = election.campaign({ wait: 0 });
      await stage.clock.advance(2_410);
      const term = await winning;
      expect(stage.store.record('jobs')?.holding?.candidate.id).toBe('a');
      await stage.clock.advance(leaseMs);
      expect(term.isLeading()).toBe(true);
      expect(term.predecessor).toBeUndefined();
      expect(stage.store.record('jobs')).toMatchObject({ token: 2n, history: [] });
      await term[Symbol.asyncDispose]();
    },
  );

  test('a write that was refused for certain is not waited for', async () => {
    const stage = new Stage();
    const { connection, election } = stage.candidate('a');
    const other = stage.candidate('b').election;
    connection.next('read', {});
    connection.next('swap', { requestMs: 1_000 });
    const tried = outcome(election.campaign({ wait: 0 }));
    await stage.clock.advance(500);
    const term = await other.campaign();
    const { swap } = connection.sent;
    await stage.clock.advance(1_000);
    expect(await tried).toMatchObject({ why: { kind: 'led', id: 'b' } });
    expect(connection.sent.swap).toBe(swap);
    await term[Symbol.asyncDispose]();
  });
});

describe('a candidate that is told to stop', () => {
  test.each([
    ['cannot land', {}, 1n],
    ['has landed', { replyMs: 2_000 }, 2n],
  ])(
    'whoever had to be fenced before still has to be, and nobody else, when its write %s',
    async (_what, read, token) => {
      const stage = new Stage();
      const { connection, election } = stage.candidate('a');
      const dead = stage.candidate('dead');
      await dead.election.campaign();
      dead.connection.outage = 'silent';
      connection.next('swap', late);
      const stop = new AbortController();
      const waiting = outcome(election.campaign({ signal: stop.signal }));
      for (let i = 0; i < 2_000 && connection.sent.swap === 0; i += 1)
        await stage.clock.advance(10);
      expect(connection.sent.swap).toBe(1);
      connection.next('read', read);
      stop.abort(new Error('enough'));
      await stage.clock.advance(5_000);
      expect(await waiting).toMatchObject({ message: 'enough' });
      await stage.clock.advance(10_000);
      const record = stage.store.record('jobs');
      expect(record).toMatchObject({ token, unfenced: [{ id: 'dead', token: 1n }] });
      expect(record?.holding).toBeUndefined();
      expect(record?.history.map(({ id, why }) => `${id} ${why}`)).toEqual(['dead unclean']);
      expect(await stage.successor()).toEqual(['dead']);
    },
  );

  test('while it pauses after a write of unknown outcome: the write cannot land', async () => {
    const stage = new Stage();
    const { connection, election } = stage.candidate('a');
    const seen = stage.watch();
    connection.next('swap', { requestMs: 20_000 }, 3);
    const stop = new AbortController();
    const waiting = outcome(election.campaign({ signal: stop.signal }));
    for (let i = 0; i < 2_000 && connection.sent.swap < 3; i += 1) await stage.clock.advance(10);
    await stage.clock.advance(2_510);
    stop.abort(new Error('enough'));
    await stage.clock.advance(100);
    expect(await waiting).toMatchObject({ message: 'enough' });
    await stage.clock.advance(60_000);
    expect(seen).toEqual([]);
    expect(stage.store.record('jobs')).toMatchObject({ token: 0n });
  });

  test('while its win is being answered: the seat is given back, and nobody is told that it has led', async () => {
    const stage = new Stage();
    const { connection, election } = stage.candidate('a');
    connection.next('swap', { replyMs: 1_000 });
    const stop = new AbortController();
    const waiting = outcome(election.campaign({ signal: stop.signal }));
    await stage.clock.advance(500);
    stop.abort(new Error('enough'));
    await stage.clock.advance(1_000);
    expect(await waiting).toMatchObject({ message: 'enough' });
    expect(stage.store.record('jobs')).toMatchObject({ token: 1n, history: [], unfenced: [] });
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
  });

  test('what an operator has written meanwhile stays', async () => {
    const stage = new Stage();
    const { connection, election } = stage.candidate('a');
    const operator = stage.candidate('operator').election;
    connection.next('swap', { requestMs: 500, lose: 'reply' });
    const stop = new AbortController();
    const waiting = outcome(election.campaign({ signal: stop.signal }));
    await stage.clock.advance(1_000);
    const untilUnixMs = stage.clock.wallMs() + 3_600_000;
    await operator.drain('x', new Date(untilUnixMs));
    stop.abort(new Error('enough'));
    await stage.clock.advance(5_000);
    await waiting;
    expect(stage.store.record('jobs')).toMatchObject({ token: 1n, drains: [{ id: 'x' }] });
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
  });
});
