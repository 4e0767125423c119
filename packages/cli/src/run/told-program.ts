/** `run --shards` without `--per-shard`: one program, which is told of the shards of this process. */
import { setMaxListeners } from 'node:events';
import type { ShardTerm } from '@incumbent/shards';
import type { TermEndedError } from 'incumbent';
import { formatDuration } from 'incumbent';
import type { ForwardedSignal, ProgramExit, ProgramSpec } from '../guard/index.ts';
import { deferred } from '../guard/wait.ts';
import type { EventLog, RunEvent } from './events.ts';
import type { GuardPool } from './guard-pool.ts';
import type { Supervision } from './leadership.ts';
import { runInTerm } from './leadership.ts';
import type { AnyShard, ShardForm } from './shard-form.ts';
import { ShardListFile } from './shard-list-file.ts';

export interface ToldProgramOptions {
  /** Of the set of shards. */
  readonly name: string;
  readonly guards: GuardPool;
  readonly events: Pick<EventLog, 'emit' | 'trouble'>;
  readonly spec: ProgramSpec;
  /** For an acknowledgement, and then once more for the program to stop. */
  readonly stopTimeoutMs: number;
}

/** Begins the program for the first shard, and once more when it was ended and shards are left. */
export class ToldProgram implements ShardForm {
  readonly finished: Promise<ProgramExit>;
  readonly #options: ToldProgramOptions;
  readonly #finished = deferred<ProgramExit>();
  #life: Promise<Life> | undefined;
  #exit: ProgramExit | undefined;
  #isLeaving = false;
  /** The program has come to its own end, or cannot be started: this process leaves. */
  #isFinished = false;

  constructor(options: ToldProgramOptions) {
    this.#options = options;
    this.finished = this.#finished.promise;
  }

  async own(shard: AnyShard, term: ShardTerm<AnyShard>): Promise<void> {
    while (!this.#isLeaving && !term.signal.aborted) {
      if (this.#isFinished) {
        // Else another process would be given this one shard, and later the others.
        await aborted(term.signal);
        return;
      }
      this.#life ??= this.#begin();
      const life = await this.#life;
      if (!(await life.own(shard, term))) return;
    }
  }

  leave(): void {
    this.#isLeaving = true;
    void this.#life?.then((life) => life.leave()).catch(() => {});
  }

  signal(name: ForwardedSignal): void {
    void this.#life?.then((life) => life.signal(name)).catch(() => {});
  }

  async close(): Promise<ProgramExit | undefined> {
    const life = await this.#life?.catch(() => undefined);
    await life?.over.catch(() => {});
    return this.#exit;
  }

  async #begin(): Promise<Life> {
    try {
      const life = new Life(this.#options, await ShardListFile.make(this.#options.name));
      if (this.#isLeaving) life.leave();
      life.over.then(
        (end) => {
          this.#life = undefined;
          if (typeof end === 'string') return;
          this.#isFinished = true;
          this.#exit = end;
          this.#finished.resolve(end);
        },
        (error: Error) => {
          this.#life = undefined;
          this.#isFinished = true;
          this.#finished.reject(error);
        },
      );
      return life;
    } catch (error) {
      this.#life = undefined;
      throw error;
    }
  }
}

/**
 * How a life came to its end.
 *
 * - an exit: the program came to its own end
 * - `ended`: it was told to stop, and another life may begin
 * - `lost`: by the guard, or it was not started since too little belief was left
 */
type LifeEnd = ProgramExit | 'ended' | 'lost';

/** One life of the program: from its first shard until no process of it can act any more. */
class Life {
  /** Rejects when the program could not be started. */
  readonly over: Promise<LifeEnd>;
  readonly #options: ToldProgramOptions;
  readonly #file: ShardListFile;
  readonly #begun = deferred<void>();
  readonly #stop = new AbortController();
  readonly #over = new AbortController();
  #run: Supervision | undefined;
  #isLeaving = false;
  /** The version of the last HUP. */
  #hungUpFor = 0;

  constructor(options: ToldProgramOptions, file: ShardListFile) {
    this.#options = options;
    this.#file = file;
    // Each shard waits for it.
    setMaxListeners(0, this.#over.signal);
    this.over = this.#begun.promise.then(() => this.#live());
    this.over.catch(() => {});
  }

  /**
   * Settles when the program has acknowledged that the shard is gone, or when the program is gone.
   * @returns true while the term of the shard goes on: another life is to serve it
   */
  async own(shard: AnyShard, { token, signal }: ShardTerm<AnyShard>): Promise<boolean> {
    const isLate = this.#stop.signal.aborted || this.#over.signal.aborted;
    if (!isLate) {
      this.#file.add({ shard, token: token.toString(), since: new Date().toISOString() });
      await this.#tell();
      // The file is there before the program is.
      this.#begun.resolve();
      await aborted(signal, this.#over.signal);
      this.#file.delete(shard);
      if (!this.#over.signal.aborted) await this.#takeAway(signal.reason as TermEndedError);
      if (signal.aborted) return false;
    }
    const end = await this.over.catch(() => undefined);
    return end !== 'lost';
  }

  leave(): void {
    this.#isLeaving = true;
  }

  signal(name: ForwardedSignal): void {
    this.#run?.running?.signal(name);
  }

  /** A shard is no more in the list. */
  async #takeAway({ reason }: TermEndedError): Promise<void> {
    const { events, stopTimeoutMs } = this.#options;
    // Any other reason ends the stay. Belief goes with the last shard, and the guard kills without
    // belief. So a program that may work for nothing is stopped in order.
    if (reason !== 'handed-over' || this.#file.size === 0) {
      this.#end();
      await aborted(this.#over.signal);
      return;
    }
    const version = await this.#tell();
    const bound = new AbortController();
    const timer = setTimeout(() => bound.abort(), stopTimeoutMs);
    const isOver = aborted(bound.signal, this.#over.signal).then(() => false);
    const isTold = await Promise.race([
      this.#file.acknowledged(version).then(() => true),
      isOver,
    ]).finally(() => clearTimeout(timer));
    if (isTold) return;
    if (!this.#stop.signal.aborted && !this.#over.signal.aborted) {
      const within = formatDuration(stopTimeoutMs);
      events.emit({
        event: 'not-acknowledged',
        sentence: `the program did not acknowledge version ${version} within ${within} (--stop-timeout): ending it`,
        fields: { version },
      });
      this.#end();
    }
    await aborted(this.#over.signal);
  }

  /**
   * Shows the program its shards.
   * @returns the version that shows them
   * @throws when the file cannot be written, after the program is gone: it would work for lost shards
   */
  async #tell(): Promise<number> {
    try {
      return await this.#file.write((version, shards) => {
        this.#options.events.emit({
          event: 'told',
          sentence: `${shards} ${shards === 1 ? 'shard' : 'shards'} (version ${version})`,
          fields: { version, shards },
        });
        this.#hangUp();
      });
    } catch (error) {
      this.#end();
      this.#begun.resolve();
      await aborted(this.#over.signal);
      throw error;
    }
  }

  /**
   * Once for each version: a program that answers with an old one has been told of the new one. Not
   * before its first answer: a program that does not listen yet would die of it.
   */
  #hangUp(): void {
    const { news } = this.#file;
    const { running } = this.#run ?? {};
    if (running === undefined || news === undefined || news === this.#hungUpFor) return;
    this.#hungUpFor = news;
    running.signal('SIGHUP');
  }

  #end(): void {
    this.#stop.abort(new Error('the program is ended'));
  }

  async #live(): Promise<LifeEnd> {
    const { guards, events, spec, stopTimeoutMs } = this.#options;
    this.#file.listen((problem) => {
      if (problem !== undefined) events.trouble('an acknowledgement', new Error(problem));
      this.#hangUp();
    });
    const env = {
      ...spec.env,
      INCUMBENT_SHARDS: this.#file.path,
      INCUMBENT_SHARDS_ACK: this.#file.pipePath,
    };
    // It serves no term of its own. Belief ends it by the guard.
    const { signal } = this.#stop;
    const term = { token: 0n, signal, resign: () => {}, declareActors: async () => {} };
    try {
      const exit = await guards.use((guard) => {
        this.#run = {
          ...{ guard, stopTimeoutMs, hasSeats: false, running: undefined },
          events: { emit: (event) => this.#emit(event) },
          interrupted: () => this.#isLeaving,
        };
        return runInTerm(term, { ...spec, env }, this.#run);
      });
      return exit ?? (signal.aborted ? 'ended' : 'lost');
    } catch (error) {
      if (error === signal.reason) return 'ended';
      throw error;
    } finally {
      this.#over.abort();
      await this.#file.remove();
    }
  }

  #emit({ event, sentence, fields: { token: _, ...fields } = {} }: RunEvent): void {
    this.#options.events.emit({ event, ...(sentence !== undefined && { sentence }), fields });
    // It may have answered before.
    if (event === 'started') this.#hangUp();
  }
}

/** Resolves when one of them has aborted. */
function aborted(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      for (const signal of signals) signal.removeEventListener('abort', end);
      resolve();
    };
    for (const signal of signals) signal.addEventListener('abort', end);
    if (signals.some((signal) => signal.aborted)) end();
  });
}
