// One program that is told of its shards, with a real file and a real pipe. The program and its guard are
// played by the test.
import { appendFileSync, readFileSync } from 'node:fs';
import type { ShardTerm } from '@incumbent/shards';
import type { EndReason } from 'incumbent';
import { TermEndedError } from 'incumbent';
import { expect, onTestFinished, test } from 'vitest';
import type { GuardedProgram, ProgramExit, ProgramSpec } from '../src/guard/index.ts';
import { deferred } from '../src/guard/wait.ts';
import type { GuardPool } from '../src/run/guard-pool.ts';
import { ToldProgram } from '../src/run/told-program.ts';

/** A program that does what the test says, and notes what it is told. */
class FakeProgram implements GuardedProgram {
  readonly pid = 1;
  readonly #exited = deferred<ProgramExit>();
  readonly #gone = deferred<void>();
  readonly exited: Promise<ProgramExit> = this.#exited.promise;
  readonly gone: Promise<void> = this.#gone.promise;
  readonly told: string[] = [];
  readonly #spec: ProgramSpec;
  readonly #changed: () => void;

  constructor(spec: ProgramSpec, changed: () => void) {
    this.#spec = spec;
    this.#changed = changed;
  }

  async go(): Promise<void> {}

  stop(): void {
    this.#note('TERM');
  }

  signal(name: string): void {
    this.#note(name);
  }

  #note(what: string): void {
    this.told.push(what);
    this.#changed();
  }

  ends(exit: Partial<ProgramExit> = {}): void {
    this.#exited.resolve({ code: 0, signal: null, because: 'stopped', ...exit });
    this.#gone.resolve();
  }

  /** The shards in its file, by which it works. */
  get shards(): readonly number[] {
    const { shards } = JSON.parse(readFileSync(this.#spec.env['INCUMBENT_SHARDS']!, 'utf8'));
    return shards.map(({ shard }: { shard: number }) => shard);
  }

  says(...lines: (number | string)[]): void {
    appendFileSync(
      this.#spec.env['INCUMBENT_SHARDS_ACK']!,
      lines.map((line) => `${line}\n`).join(''),
    );
  }
}

function setUp(stopTimeoutMs = 300_000) {
  const programs: FakeProgram[] = [];
  const events: string[] = [];
  let changed = deferred<void>();
  const change = () => {
    changed.resolve();
    changed = deferred();
  };
  const note = (event: string) => {
    events.push(event);
    change();
  };
  const guard = {
    pid: 2,
    prepare: async (spec: ProgramSpec, signal?: AbortSignal) => {
      signal?.throwIfAborted();
      const program = new FakeProgram(spec, change);
      programs.push(program);
      return program;
    },
  };
  const form = new ToldProgram({
    ...{ name: 'tenants', stopTimeoutMs },
    guards: {
      use: (job: (keeper: object) => unknown) => job({ get: async () => guard }),
    } as unknown as GuardPool,
    events: { emit: ({ event }) => note(event), trouble: (what) => note(`trouble: ${what}`) },
    spec: { ...{ program: 'worker', args: [], cwd: '/' }, env: {} },
  });
  onTestFinished(async () => {
    form.leave();
    for (const program of programs) program.ends();
    await form.close();
  });
  const until = async (holds: () => unknown) => {
    while (!holds()) await changed.promise;
  };
  const count = (event: string) => events.filter((one) => one === event).length;
  return {
    ...{ form, programs, until, count },
    /** The program of that life runs. */
    started: async (nth = 1) => {
      await until(() => count('started') === nth);
      return programs[nth - 1]!;
    },
    /** The work for a shard, as a stay calls it. */
    own(shard: number) {
      const stop = new AbortController();
      const token = BigInt(shard);
      const work = { state: 'owned' };
      form.own(shard, { token, signal: stop.signal } as ShardTerm<number>).then(
        () => {
          work.state = 'given up';
          change();
        },
        (error: Error) => {
          work.state = `failed: ${error.message}`;
          change();
        },
      );
      const end = (reason: EndReason) => stop.abort(new TermEndedError(reason, token, reason));
      return Object.assign(work, { end });
    },
  };
}

test('a program is hung up once for each version, whatever it answers', async () => {
  const { own, started, until, count } = setUp();
  own(1);
  const program = await started();
  program.says(1);
  own(2);
  await until(() => program.told.length > 0);
  // The last line is refused, so all before it have been read.
  program.says(1, 1, 1, 99);
  await until(() => count('trouble: an acknowledgement') > 0);
  expect(program.told).toEqual(['SIGHUP']);
});

test('only the shard that was not acknowledged goes: the others go on in another program', async () => {
  const { own, started, until, programs, count } = setUp(1);
  const works = [own(1), own(2), own(3)] as const;
  const deaf = await started();
  deaf.says(1);
  works[1].end('handed-over');
  await until(() => deaf.told.includes('TERM'));
  expect(works.map(({ state }) => state)).toEqual(['owned', 'owned', 'owned']);
  deaf.ends();
  await until(() => works[1].state === 'given up');
  const next = await started(2);
  await until(() => count('told') > 0 && next.shards.length === 2);
  expect(next.shards).toEqual([1, 3]);
  expect(works.map(({ state }) => state)).toEqual(['owned', 'given up', 'owned']);
  expect(programs).toHaveLength(2);
});

test.each(['is stopping', 'is gone just now'])(
  'a shard that comes while a program %s waits for the next one',
  async (when) => {
    const { own, started, until } = setUp();
    const last = own(1);
    const program = await started();
    program.says(1);
    last.end('handed-over');
    await until(() => program.told.includes('TERM'));
    const early = when === 'is stopping' ? own(2) : undefined;
    program.ends();
    await until(() => last.state === 'given up');
    const late = early ?? own(2);
    const next = await started(2);
    expect(next.shards).toEqual([2]);
    expect(late.state).toBe('owned');
  },
);

test('a stay that ends stops the program, and no shard is given up before it is gone', async () => {
  const { own, started, until } = setUp();
  const works = [own(1), own(2)] as const;
  const program = await started();
  program.says(1);
  for (const work of works) work.end('withdrawn');
  await until(() => program.told.length > 0);
  expect(program.told).toEqual(['TERM']);
  expect(works.map(({ state }) => state)).toEqual(['owned', 'owned']);
  program.ends();
  await until(() => works.every(({ state }) => state === 'given up'));
});

test('any number of shards wait for the end of a program, without a warning of Node', async () => {
  const warnings: string[] = [];
  const note = ({ message }: Error) => warnings.push(message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  const { own, started, until } = setUp();
  const works = Array.from({ length: 20 }, (_, shard) => own(shard));
  const program = await started();
  await until(() => program.shards.length === works.length);
  for (const work of works) work.end('withdrawn');
  program.ends();
  await until(() => works.every(({ state }) => state === 'given up'));
  // Node tells warnings in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
});

test('a program that came to its own end keeps its shards until this process leaves', async () => {
  const { form, own, started, until } = setUp();
  const work = own(1);
  const program = await started();
  program.ends({ code: 5, because: 'itself' });
  expect(await form.finished).toMatchObject({ code: 5 });
  const late = own(2);
  expect([work.state, late.state]).toEqual(['owned', 'owned']);
  for (const one of [work, late]) one.end('withdrawn');
  await until(() => work.state === 'given up' && late.state === 'given up');
});
