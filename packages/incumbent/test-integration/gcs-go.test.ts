/** Elections that candidates of ours and Go programs on vimeo/leaderelection hold together. */
import { once } from 'node:events';
import { Storage } from '@google-cloud/storage';
import { FakeGcs } from '@incumbent/servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GcsOptions, StorageLike } from '../src/backends/gcs/index.ts';
import { gcs } from '../src/backends/gcs/index.ts';
import type { Term, View } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import type { GoRaceOptions } from './support/go-race.ts';
import { GoRace } from './support/go-race.ts';

const lease = '2s';
const options: GcsOptions = {
  bucket: 'elections',
  maxWritesPerSecond: 100,
  maxClockSkew: '500ms',
};

let server: FakeGcs;

beforeAll(async () => {
  server = await FakeGcs.start();
  // The store's clock is another one again.
  server.clockAheadMs = 120;
});

afterAll(() => server?.close());

function goRace(object: string, leaderId: string, given: Partial<GoRaceOptions> = {}): GoRace {
  return new GoRace({
    url: server.url,
    bucket: 'elections',
    object,
    leaderId,
    hostPorts: ['10.0.0.9:50051', '10.0.0.10:50051'],
    connectionParameters: new TextEncoder().encode('{"loadBalancingConfig":[]}'),
    termLengthMs: 1_800,
    maxClockSkewMs: 300,
    clockAheadMs: 0,
    ...given,
  });
}

/** A client whose connections can be cut: requests get no answer any more. */
function cable(): { readonly storage: StorageLike; cut(): void } {
  const real = new Storage({ apiEndpoint: server.url, projectId: 'test' });
  let isCut = false;
  const silent = { on: () => {}, end: () => {} };
  return {
    cut: () => {
      isCut = true;
    },
    storage: {
      bucket: (bucket) => ({
        file(name) {
          const file = real.bucket(bucket).file(name);
          return isCut
            ? {
                metadata: undefined,
                requestStream: () => silent,
                createWriteStream: () => silent,
                getMetadata: () => new Promise(() => {}),
              }
            : file;
        },
      }),
    },
  };
}

/** A member, ours or Go's, that can be ended in more than one way. */
interface Member {
  readonly name: string;
  readonly kind: 'ours' | 'go';
  isLeading(): boolean;
  stop(): Promise<void>;
  /** It is not heard of any more, and believes as long as it may. */
  cut(): void;
}

class Crowd {
  readonly #name: string;
  readonly #members = new Set<Member>();
  readonly #timer: NodeJS.Timeout;
  /** Of each that began to lead, in turn: our tokens, and Go's numbers. */
  readonly numbers: bigint[] = [];
  readonly kinds: string[] = [];
  readonly violations = new Set<string>();
  #count = 0;

  constructor(name: string) {
    this.#name = name;
    this.#timer = setInterval(() => this.#look(), 2);
  }

  ours(): Member {
    const { storage, cut } = cable();
    this.#count += 1;
    const name = `ours-${this.#count}`;
    const election = createElection({
      name: this.#name,
      backend: gcs(storage, options),
      candidate: { id: name },
      lease,
      pollEvery: '200ms',
    });
    let term: Term | undefined;
    const member: Member = {
      name,
      kind: 'ours',
      isLeading: () => term?.isLeading() === true,
      stop: () => election.close(),
      cut,
    };
    election
      .lead(async (leading) => {
        term = leading;
        this.#began(member, leading.token);
        if (!leading.signal.aborted) await once(leading.signal, 'abort');
        // The worst that work can do: it goes on for as long as it may.
        while (leading.isLeading() && leading.signal.reason?.reason === 'renewal-failed') {
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      })
      .catch(() => {});
    this.#members.add(member);
    return member;
  }

  go(clockAheadMs: number): Member {
    this.#count += 1;
    const name = `go-${this.#count}`;
    const race = goRace(this.#name, name, { clockAheadMs });
    const cancel = new AbortController();
    const member: Member = {
      name,
      kind: 'go',
      isLeading: () => race.isLeading(),
      async stop() {
        cancel.abort();
        await running;
      },
      cut: () => {
        race.isCut = true;
      },
    };
    race.onElected = (number) => this.#began(member, number);
    // A fatal error ends a Go program, and its supervisor starts another one.
    const supervise = async () => {
      while (!cancel.signal.aborted) await race.acquire(cancel.signal).catch(() => {});
    };
    const running = supervise();
    this.#members.add(member);
    return member;
  }

  #began(member: Member, number: bigint): void {
    const highest = this.numbers.at(-1) ?? -1n;
    if (number <= highest) {
      this.violations.add(`${member.name} leads with ${number}, after ${highest}`);
    }
    this.numbers.push(number);
    this.kinds.push(member.kind);
    this.#look();
  }

  #look(): void {
    const leaders = [...this.#members].filter((member) => member.isLeading());
    // Two Go programs may lead at a time where their clocks differ by more than they were told: that
    // is theirs.
    if (leaders.length > 1 && leaders.some(({ kind }) => kind === 'ours')) {
      this.violations.add(`${leaders.map(({ name }) => name).join(' and ')} lead`);
    }
  }

  /** The leader after so many changes. */
  async leaderAfter(changes: number): Promise<Member> {
    const untilMs = performance.now() + 60_000;
    while (performance.now() < untilMs) {
      const leader = [...this.#members].find((member) => member.isLeading());
      if (this.numbers.length > changes && leader !== undefined) return leader;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw new Error(`nobody leads after ${changes} changes`);
  }

  async end(): Promise<void> {
    await Promise.all([...this.#members].map((member) => member.stop()));
    clearInterval(this.#timer);
  }
}

describe.concurrent('an election that candidates of ours and Go programs hold', () => {
  // Clocks of Go programs, ahead of ours, which is 120 ms behind the store: all within `maxClockSkew`.
  test.each([
    [0, 0],
    [600, -330],
    [-360, 600],
    [-360, -250],
  ])('clocks %i and %i ms ahead: one leads at a time, through many changes', async (...clocks) => {
    const crowd = new Crowd(`mixed-${clocks.join('-')}`);
    const changes = 7;
    crowd.go(clocks[0] as number);
    for (let change = 0; change < changes; change += 1) {
      const leader = await crowd.leaderAfter(change);
      // A member of the other kind waits, and at times one of the same kind.
      if (leader.kind === 'go') crowd.ours();
      else crowd.go(clocks[change % 2] as number);
      if (change % 3 === 2) {
        if (leader.kind === 'ours') crowd.ours();
        else crowd.go(clocks[1] as number);
      }
      if (change % 2 === 0) leader.cut();
      else await leader.stop();
    }
    await crowd.leaderAfter(changes);
    expect([...crowd.violations]).toEqual([]);
    const hops = crowd.kinds.map((kind, index) => `${crowd.kinds[index - 1]}-${kind}`);
    expect(hops).toContain('ours-go');
    expect(hops).toContain('go-ours');
    await crowd.end();
    expect([...crowd.violations]).toEqual([]);
  });

  // It does not regard skew when it starts: an entry that has expired by its own clock is
  // taken at once.
  test('a Go program that starts with a clock far ahead takes the seat when our belief is over', async () => {
    const name = 'started';
    const { storage, cut } = cable();
    const backend = gcs(storage, { ...options, maxClockSkew: '1500ms' });
    const election = createElection({ name, backend, lease });
    const term = await election.campaign();
    cut();
    let beside: boolean | undefined;
    while (beside === undefined) {
      const starting = new AbortController();
      // 1,480 ms ahead of the store.
      const go = goRace(name, 'go-1', { clockAheadMs: 1_600 });
      go.onElected = () => {
        beside = term.isLeading();
        starting.abort();
      };
      const running = go.acquire(starting.signal).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 50));
      starting.abort();
      await running;
    }
    expect(beside).toBe(false);
    await term[Symbol.asyncDispose]();
    await election.close();
  });

  test('what a Go program publishes is what observers of ours see, and the other way round', async () => {
    const name = 'published';
    const cancel = new AbortController();
    const go = goRace(name, 'go-1');
    const leading = new Promise((resolve) => {
      go.onElected = resolve;
    });
    const running = go.acquire(cancel.signal);
    expect(await leading).toBe(0n);
    const election = createElection({
      name,
      backend: gcs(new Storage({ apiEndpoint: server.url, projectId: 'test' }), options),
      candidate: {
        id: 'ours',
        addresses: ['10.0.0.7:50051', '10.0.0.8:50051'],
        metadata: { connectionParameters: '{"methodConfig":[]}' },
      },
      lease,
    });
    // The first answer may take longer than an operation may: an observer asks again.
    let view: View | undefined;
    for await (view of election.observe()) if (view.state !== 'unknown') break;
    expect(view).toMatchObject({
      state: 'led',
      leader: {
        id: 'go-1',
        addresses: ['10.0.0.9:50051', '10.0.0.10:50051'],
        metadata: { connectionParameters: '{"loadBalancingConfig":[]}' },
      },
    });
    cancel.abort();
    await running;
    const term = await election.campaign();
    expect(term.token).toBeGreaterThan(0n);
    const beforeMs = Date.now();
    const seen = await go.readCurrent(new AbortController().signal);
    expect(seen).toMatchObject({
      leaderId: 'ours',
      hostPorts: ['10.0.0.7:50051', '10.0.0.8:50051'],
      electionNumber: term.token,
    });
    expect(new TextDecoder().decode(seen.connectionParameters)).toBe('{"methodConfig":[]}');
    expect(seen.termExpiryMs).toBeGreaterThan(beforeMs);
    await term[Symbol.asyncDispose]();
    const vacated = await go.readCurrent(new AbortController().signal);
    expect(vacated).toMatchObject({ leaderId: '', electionNumber: term.token });
    expect(vacated.termExpiryMs).toBeLessThanOrEqual(Date.now());
    await election.close();
  });

  test('a seat that was given back is taken by a Go program at once, and with the next number', async () => {
    const name = 'given-back';
    const storage = new Storage({ apiEndpoint: server.url, projectId: 'test' });
    const election = createElection({ name, backend: gcs(storage, options), lease: '60s' });
    const term = await election.campaign();
    await term[Symbol.asyncDispose]();
    const cancel = new AbortController();
    const go = goRace(name, 'go-1');
    const won = new Promise<bigint>((resolve) => {
      go.onElected = resolve;
    });
    const running = go.acquire(cancel.signal);
    expect(await won).toBe(term.token + 1n);
    cancel.abort();
    await running;
    await election.close();
  });

  test('an election that was ended, or whose seat is held for longer, is taken by no Go program', async () => {
    const { storage, cut } = cable();
    const backend = gcs(storage, options);
    const [ended, held] = ['ended', 'held'].map((name) => createElection({ name, backend, lease }));
    await (await ended?.campaign())?.[Symbol.asyncDispose]();
    await ended?.end();
    const stop = new AbortController();
    const holding = held?.lead(() => {}, { holdAtLeast: '10m', signal: stop.signal });
    holding?.catch(() => {});
    const go = ['ended', 'held'].map((name) => goRace(name, 'go-1', { clockAheadMs: 330 }));
    const inTenMinutes = async () => {
      const { termExpiryMs } = await (go[1] as GoRace).readCurrent(stop.signal);
      return termExpiryMs > Date.now() + 500_000;
    };
    while (!(await inTenMinutes())) await new Promise((resolve) => setTimeout(resolve, 10));
    cut();
    const won: GoRace[] = [];
    const running = go.map((race) => {
      race.onElected = () => void won.push(race);
      return race.acquire(stop.signal).catch(() => {});
    });
    // Far longer than our lease and what Go waits besides.
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect(won).toEqual([]);
    stop.abort();
    await Promise.all([...running, ended?.close(), held?.close()]);
  });
});
