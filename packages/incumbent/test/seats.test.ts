import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { Entrusted } from '../src/core/companion.ts';
import type { Backend } from '../src/core/contest.ts';
import { giveBackSeat } from '../src/core/give-back-seat.ts';
import type { SeatIdentity } from '../src/core/seat-identity.ts';
import { SeatTeller } from '../src/core/seat-identity.ts';
import type { ElectionOptions, LeadOptions, Term } from '../src/index.ts';
import { createElection, ElectionEndedError, NotElectedError } from '../src/index.ts';
import { SimulatedClock, SimulatedLeaseStore, SimulatedQueueStore } from '../src/testing/index.ts';

/** A process, and how its way to the store is broken and mended. */
interface Member {
  readonly backend: Backend<bigint>;
  cut(): void;
  mend(): void;
  /** The answer of its next write is lost. */
  loseAnswer(): void;
  /** Its next write reaches the store only after five seconds. */
  delayWrite(): void;
}

interface Ground {
  readonly clock: SimulatedClock;
  readonly connect: () => Member;
  /** By id, the candidates that the records name as leaders. */
  readonly named: () => readonly (string | undefined)[];
  /** After a crash, a seat is taken over within this time. */
  readonly boundMs: number;
}

const names = ['jobs', 'jobs.seat-2', 'jobs.seat-3'];

function leases(): Ground {
  const clock = new SimulatedClock();
  const store = new SimulatedLeaseStore({ clock });
  const connect = () => {
    const connection = store.connect();
    return {
      backend: connection.backend,
      cut: () => {
        connection.outage = 'silent';
      },
      mend: () => {
        connection.outage = 'none';
      },
      loseAnswer: () => connection.next('swap', { lose: 'reply' }),
      delayWrite: () => connection.next('swap', { requestMs: 5_000 }),
    };
  };
  const named = () => names.map((name) => store.record(name)?.holding?.candidate.id);
  return { clock, connect, named, boundMs: 40_000 };
}

function queues(): Ground {
  const clock = new SimulatedClock();
  const store = new SimulatedQueueStore({ clock });
  const connect = () => {
    const session = store.connect();
    let isCut = false;
    return {
      backend: session.backend,
      cut: () => {
        if (isCut) return;
        isCut = true;
        session.suspend();
        session.expire({ unheard: true });
      },
      mend: () => {
        isCut = false;
        session.restore();
      },
      loseAnswer: () => session.next('commit', { lose: 'reply' }),
      delayWrite: () => session.next('commit', { requestMs: 5_000 }),
    };
  };
  const named = () =>
    names.map((name) => {
      const holding = store.record(name)?.holding;
      return holding && store.places(name).includes(holding.place)
        ? holding.candidate.id
        : undefined;
    });
  return { clock, connect, named, boundMs: 40_000 };
}

/** Candidates that lead until they are told to stop, and what they do as leaders. */
class Crew {
  readonly ground: Ground;
  readonly terms = new Map<string, Set<Term<bigint>>>();
  readonly faults: string[] = [];
  readonly #stop = new AbortController();
  /** The fenced log: per seat, the highest token that has written. */
  readonly #log = new Map<number, bigint>();
  readonly #runs: Promise<unknown>[] = [];

  constructor(ground: Ground) {
    this.ground = ground;
  }

  add(
    id: string,
    more: Partial<ElectionOptions<bigint>> = {},
    campaign: Partial<LeadOptions> = {},
  ): Member {
    const member = this.ground.connect();
    const { clock } = this.ground;
    const { backend } = member;
    const election = createElection<bigint>({
      ...{ name: 'jobs', backend, clock, seats: 3, candidate: { id }, random: () => 0.5 },
      onTrouble: () => {},
      ...more,
    });
    const held = new Set<Term<bigint>>();
    this.terms.set(id, held);
    const work = async (term: Term<bigint>) => {
      held.add(term);
      await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
      held.delete(term);
    };
    const { signal } = this.#stop;
    this.#runs.push(election.lead(work, { ...campaign, signal }).catch((error: unknown) => error));
    return member;
  }

  /** The terms that believe now. */
  get leading(): readonly Term<bigint>[] {
    return [...this.terms.values()].flatMap((held) => [...held].filter((t) => t.isLeading()));
  }

  /** Lets the leaders act, and says what is wrong. */
  act(): void {
    const { leading } = this;
    if (leading.length > 3) this.faults.push(`${leading.length} leaders`);
    if (new Set(leading.map(({ seat }) => seat)).size < leading.length) {
      this.faults.push('two leaders of one seat');
    }
    for (const [id, held] of this.terms) {
      if ([...held].filter((term) => term.isLeading()).length > 1)
        this.faults.push(`${id} has two`);
    }
    for (const { seat, token } of leading) {
      if (token < (this.#log.get(seat) ?? 0n))
        this.faults.push(`seat ${seat}: token ${token} fell`);
      this.#log.set(seat, token);
    }
  }

  async advance(ms: number, stepMs = 50): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      await this.ground.clock.advance(stepMs);
      this.act();
    }
  }

  /** @returns false when three do not lead within the time */
  async untilThree(ms: number): Promise<boolean> {
    for (let passed = 0; passed < ms; passed += 100) {
      if (this.leading.length === 3) return true;
      await this.advance(100);
    }
    return this.leading.length === 3;
  }

  /** @returns what the calls of `lead` have rejected with */
  async end(): Promise<readonly unknown[]> {
    this.#stop.abort(new Error('over'));
    const all = Promise.all(this.#runs);
    await this.advance(60_000, 1_000);
    return all;
  }
}

/** Numbers from 0 to 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

describe.each([
  ['leases', leases],
  ['queues', queues],
])('three seats on a store of %s', (_kind, makeGround) => {
  test('three of five candidates lead, each in a seat of its own, and the others wait', async () => {
    const crew = new Crew(makeGround());
    for (const id of ['a', 'b', 'c', 'd', 'e']) crew.add(id);
    expect(await crew.untilThree(10_000)).toBe(true);
    await crew.advance(30_000);
    expect(crew.leading.map(({ seat }) => seat).sort()).toEqual([1, 2, 3]);
    expect(new Set(crew.ground.named()).size).toBe(3);
    expect(crew.faults).toEqual([]);
    await crew.end();
  });

  test('one candidate alone takes one seat', async () => {
    const crew = new Crew(makeGround());
    crew.add('a');
    await crew.advance(60_000);
    expect(crew.leading.map(({ seat }) => seat)).toEqual([1]);
    expect(crew.ground.named()).toEqual(['a', undefined, undefined]);
    await crew.end();
  });

  test.each(Array.from({ length: 12 }, (_, seed) => seed + 1))(
    'random schedule %i: never four, nobody has two, three again within the bound',
    async (seed) => {
      const random = randomFrom(seed);
      const crew = new Crew(makeGround());
      const members = Array.from({ length: 6 }, (_, index) => crew.add(`c${index}`, { random }));
      const any = () => members[Math.floor(random() * members.length)] as Member;
      for (let round = 0; round < 12; round += 1) {
        const draw = random();
        if (draw < 0.5) any().cut();
        else if (draw < 0.7) any().loseAnswer();
        else for (const member of members) member.mend();
        await crew.advance(random() * 12_000);
      }
      for (const member of members) member.mend();
      expect(await crew.untilThree(crew.ground.boundMs)).toBe(true);
      members.find((_, index) => crew.terms.get(`c${index}`)?.size === 1)?.cut();
      await crew.advance(1_000);
      expect(await crew.untilThree(crew.ground.boundMs)).toBe(true);
      expect(crew.faults).toEqual([]);
      await crew.end();
    },
  );

  test('a candidate for another number is refused before it leads, with both numbers', async () => {
    for (const [mine, theirs] of [
      [3, 5],
      [3, 2],
      [3, 1],
      [1, 3],
    ] as const) {
      const ground = makeGround();
      const crew = new Crew(ground);
      crew.add('a', { seats: mine });
      await crew.advance(2_000);
      const other = new Crew(ground);
      other.add('b', { seats: theirs });
      await other.advance(10_000);
      expect(other.leading).toEqual([]);
      expect(await other.end().then(([error]) => String(error))).toContain(
        `election "jobs" has ${mine} seat${mine > 1 ? 's' : ''}, and this candidate is for ${theirs} seat`,
      );
      await crew.end();
    }
  });

  test('candidates for two numbers that begin in one moment: only those of the first winner lead', async () => {
    const ground = makeGround();
    const crew = new Crew(ground);
    for (const [index, seats] of [5, 3, 5, 3, 5, 3, 5, 3].entries())
      crew.add(`c${index}`, { seats });
    await crew.advance(20_000);
    const leaders = crew.leading.map(({ candidate }) => Number(candidate.slice(1)) % 2);
    expect(new Set(leaders).size).toBe(1);
    await crew.end();
  });

  test('wait: 0 finds a vacant seat, or says that all are taken', async () => {
    const ground = makeGround();
    const { clock } = ground;
    const crew = new Crew(ground);
    crew.add('a');
    crew.add('b');
    await crew.advance(5_000);
    const handle = (id: string) =>
      createElection<bigint>({
        ...{ name: 'jobs', backend: ground.connect().backend, clock, seats: 3, candidate: { id } },
      });
    const winning = handle('c').campaign({ wait: 0 });
    await clock.advance(2_000);
    const term = await winning;
    expect(term.seat).toBe(3);
    const losing = handle('d').campaign({ wait: 0 });
    const refused = losing.catch((error: unknown) => error);
    await clock.advance(2_000);
    expect(await refused).toBeInstanceOf(NotElectedError);
    expect(String(await refused)).toContain('all 3 seats are taken');
    await Promise.all([term[Symbol.asyncDispose](), clock.advance(5_000)]);
    await crew.end();
  });

  test('operators drain from all seats, and vacate or hand over one', async () => {
    const ground = makeGround();
    const { clock } = ground;
    const crew = new Crew(ground);
    for (const id of ['a', 'b', 'c', 'd']) crew.add(id);
    await crew.untilThree(10_000);
    const operator = createElection<bigint>({
      ...{ name: 'jobs', backend: ground.connect().backend, clock, seats: 3 },
    });
    const ask = async <T>(call: Promise<T>): Promise<T> => {
      call.catch(() => {});
      await crew.advance(5_000);
      return call;
    };
    const leaders = async () =>
      (await ask(operator.leaders())).map(({ leader }) => leader?.id ?? 'none');
    const before = await leaders();
    const waiting = ['a', 'b', 'c', 'd'].find((id) => !before.includes(id)) as string;
    expect(await ask(operator.candidates()).then((all) => all.map(({ id }) => id).sort())).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
    // To one that waits, and to none that leads.
    await expect(ask(operator.transfer(before[0] as string, { seat: 2 }))).rejects.toThrow(
      `"${before[0]}" leads seat 1`,
    );
    await ask(operator.transfer(waiting, { seat: 2 }));
    await crew.advance(10_000);
    expect(await leaders()).toEqual([before[0], waiting, before[2]]);
    await ask(operator.vacate({ seat: 1 }));
    await crew.advance(10_000);
    expect((await leaders())[0]).toBe(before[1]);
    await ask(operator.drain(waiting, new Date(clock.wallMs() + 3_600_000)));
    await crew.advance(20_000);
    expect(await leaders()).not.toContain(waiting);
    expect(await crew.untilThree(1_000)).toBe(true);
    await ask(operator.end());
    await crew.advance(20_000);
    expect(crew.leading).toEqual([]);
    expect((await ask(operator.leaders())).map(({ state }) => state)).toEqual(
      Array(3).fill('ended'),
    );
    expect(crew.faults).toEqual([]);
    await crew.end();
  });

  test.each(['loseAnswer', 'delayWrite'] as const)(
    'a win in doubt (%s) is taken back by a candidate that has won another seat',
    async (fault) => {
      const crew = new Crew(makeGround());
      crew.add('a');
      await crew.advance(5_000);
      crew.add('b')[fault]();
      await crew.advance(30_000);
      expect(crew.terms.get('b')?.size).toBe(1);
      expect(crew.ground.named().filter((id) => id === 'b')).toHaveLength(1);
      // The other record names nobody, so there is nobody to wait for and to fence.
      const fenced: string[] = [];
      crew.add('c', {}, { onUnclean: ({ id }) => void fenced.push(id) });
      expect(await crew.untilThree(5_000)).toBe(true);
      expect(fenced).toEqual([]);
      expect(crew.faults).toEqual([]);
      await crew.end();
    },
  );

  test('an election that was ended and opened again has as many seats as before', async () => {
    const ground = makeGround();
    const { clock } = ground;
    const operator = createElection<bigint>({
      ...{ name: 'jobs', backend: ground.connect().backend, clock, seats: 3 },
    });
    const before = new Crew(ground);
    for (const id of ['a', 'b', 'c', 'd']) before.add(id);
    await before.untilThree(10_000);
    await Promise.all([operator.end(), before.advance(20_000)]);
    expect(before.leading).toEqual([]);
    for (const error of await before.end()) expect(error).toBeInstanceOf(ElectionEndedError);
    await Promise.all([operator.reopen(), clock.advance(5_000)]);
    const after = new Crew(ground);
    for (const id of ['e', 'f', 'g', 'h']) after.add(id);
    expect(await after.untilThree(10_000)).toBe(true);
    const other = new Crew(ground);
    other.add('i', { seats: 5 });
    await other.advance(5_000);
    expect(String((await other.end())[0])).toContain('has 3 seats');
    expect(after.faults).toEqual([]);
    await after.end();
  });

  test('a candidate that is drained or unhealthy keeps no seat from the others', async () => {
    const ground = makeGround();
    const { clock } = ground;
    const crew = new Crew(ground);
    crew.add('a');
    await crew.advance(3_000);
    const operator = createElection<bigint>({
      ...{ name: 'jobs', backend: ground.connect().backend, clock, seats: 3 },
    });
    const until = new Date(clock.wallMs() + 60_000);
    await Promise.all([operator.drain('b', until), crew.advance(2_000)]);
    crew.add('b');
    let isWell = false;
    const check = () => {
      if (!isWell) throw new Error('not well');
    };
    crew.add('c', {}, { health: { check } });
    await crew.advance(2_000);
    for (const id of ['d', 'e']) crew.add(id);
    expect(await crew.untilThree(10_000)).toBe(true);
    expect(crew.leading.map(({ candidate }) => candidate).sort()).toEqual(['a', 'd', 'e']);
    isWell = true;
    await Promise.all([operator.drain('a', until), crew.advance(20_000)]);
    expect(crew.leading.map(({ candidate }) => candidate).sort()).toEqual(['c', 'd', 'e']);
    expect(crew.faults).toEqual([]);
    await crew.end();
  });

  test('diagnostics and fence hooks say which seat it is', async () => {
    const ground = makeGround();
    const crew = new Crew(ground);
    const heard: string[] = [];
    const channels = ['won', 'leading', 'confirmed', 'ended'].map((name) => `incumbent:${name}`);
    const listen = (payload: unknown, channel: string | symbol) => {
      const { seat, candidate } = payload as { seat: number; candidate: string };
      if (candidate === 'b') heard.push(`${String(channel)} ${seat}`);
    };
    for (const name of channels) subscribe(name, listen);
    const fenced: number[] = [];
    const onUnclean = (_: unknown, { seat }: { readonly seat: number }) => {
      fenced.push(seat);
    };
    crew.add('a');
    await crew.advance(3_000);
    const second = crew.add('b');
    await crew.advance(3_000);
    crew.add('c', { seats: 3 });
    await crew.advance(3_000);
    crew.add('d', {}, { onUnclean });
    second.cut();
    await crew.advance(60_000);
    for (const name of channels) unsubscribe(name, listen);
    expect(new Set(heard)).toEqual(new Set(channels.map((name) => `${name} 2`)));
    expect(fenced).toEqual([2]);
    await crew.end();
  });

  test('a witness of a death gives the very seat back', async () => {
    const ground = makeGround();
    const { clock } = ground;
    const crew = new Crew(ground);
    crew.add('a');
    await crew.advance(3_000);
    let told: SeatIdentity | undefined;
    const member = ground.connect();
    const election = createElection<bigint>({
      ...{ name: 'jobs', backend: member.backend, clock, seats: 3, candidate: { id: 'b' } },
    });
    const onSeat = (seat: SeatIdentity | undefined) => {
      told = seat;
    };
    const leading = election.campaign({ onSeat });
    await clock.advance(3_000);
    expect((await leading).seat).toBe(2);
    expect(told?.seat).toBe(2);
    const given = giveBackSeat({
      ...{ name: 'jobs', backend: ground.connect().backend, clock, seat: told as SeatIdentity },
      ...{ hasWorkEnded: true, signal: new AbortController().signal },
    });
    await clock.advance(1_000);
    expect(await given).toBe(true);
    expect(ground.named()).toEqual(['a', undefined, undefined]);
    await crew.end();
  });
});

test('a candidate that campaigns again has left the lines of its last campaign before', async () => {
  const clock = new SimulatedClock();
  // So long that a place may be left later than the candidate comes back.
  const store = new SimulatedQueueStore({ clock, sessionTimeoutMs: 40_000 });
  const [first, second] = [store.connect(), store.connect()];
  const handle = ({ backend }: { backend: Backend<bigint> }, id: string) =>
    createElection<bigint>({ name: 'jobs', backend, clock, seats: 3, candidate: { id } });
  const [a, b] = [handle(first, 'a'), handle(second, 'b')];
  const winning = Promise.all([a.campaign(), clock.advance(5_000)]);
  const [firstTerm] = await winning;
  second.next('leave', { requestMs: 3_000 }, 2);
  let terms = 0;
  const leading = b.lead(async (term) => {
    terms += 1;
    if (terms === 1) term.resign();
    else await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
  });
  leading.catch(() => {});
  for (let passed = 0; passed < 20_000; passed += 50) {
    await clock.advance(50);
    for (const name of names) {
      expect(store.waiting(name).filter((id) => id === 'b').length).toBeLessThanOrEqual(1);
    }
  }
  expect(terms).toBe(2);
  await Promise.all([b.close(), clock.advance(20_000)]);
  await Promise.all([firstTerm[Symbol.asyncDispose](), clock.advance(20_000)]);
  await a.close();
});

test('the companion is told the number of the seat with each write', () => {
  const module = new URL(import.meta.url);
  const store = { module: module.href, name: 'default', args: [] };
  const told: (SeatIdentity | undefined)[] = [];
  const entrusted = new Entrusted(
    { election: 'jobs', timing: {}, store },
    (seat) => told.push(seat),
    () => {},
  );
  const teller = new SeatTeller({ id: 'b', incarnation: 'i' }, entrusted.onSeat, () => {});
  teller.onWrite({ token: 5n, nonce: 'x', seat: 1 });
  teller.onWrite({ token: 5n, nonce: 'y', seat: 2 });
  expect(JSON.parse(entrusted.line ?? '')).toMatchObject({
    bequest: { election: 'jobs', seat: { token: '5', seat: 2, nonces: ['y'] } },
  });
  teller.onOver();
  expect(told.map((seat) => seat?.seat)).toEqual([1, 2, undefined]);
  entrusted.close();
});

describe('with seats', () => {
  const make = (more: object) =>
    createElection({ name: 'jobs', backend: memory(), seats: 3, ...more } as never);

  test.each([[0], [-1], [1.5], [101], ['3'], [null]])('seats: %j is refused', (seats) => {
    expect(() => make({ seats })).toThrow('seats must be a whole number from 1 to 100, not');
  });

  test('a name must leave room for the numbers of the seats', () => {
    expect(() => make({ name: 'n'.repeat(195) })).toThrow('at most 200 are allowed');
  });

  test('a call that concerns one seat must say which', async () => {
    const election = make({});
    await expect(election.leader()).rejects.toThrow('this election has 3 seats: say which one');
    await expect(election.vacate({ seat: 4 })).rejects.toThrow(
      'seat must be a whole number from 1 to 3',
    );
    expect(() => election.observe()).toThrow('this election has 3 seats: say which one');
    await expect(make({ seats: 1 }).leader({ seat: 2 })).rejects.toThrow('from 1 to 1');
    await election.close();
  });

  test('one seat is the election as it always was', async () => {
    const backend = memory();
    const one = createElection({ name: 'jobs', backend, seats: 1 });
    const term = await one.campaign();
    expect(term.seat).toBe(1);
    const names: string[] = [];
    for await (const name of backend.elections()) names.push(name);
    expect(names).toEqual(['jobs']);
    await term[Symbol.asyncDispose]();
    await one.close();
  });

  test('each seat is listed as an election', async () => {
    const backend = memory();
    const handles = [1, 2].map(() => createElection({ name: 'jobs', backend, seats: 2 }));
    const [a, b] = await Promise.all(handles.map((handle) => handle.campaign()));
    const names: string[] = [];
    for await (const name of backend.elections()) names.push(name);
    expect(names.sort()).toEqual(['jobs', 'jobs.seat-2']);
    for (const term of [a, b]) await term?.[Symbol.asyncDispose]();
    for (const handle of handles) await handle.close();
  });
});
