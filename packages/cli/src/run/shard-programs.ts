/** `run --per-shard`: one program for each shard that this process owns. */
import type { ShardTerm } from '@incumbent/shards';
import type { ForwardedSignal, ProgramExit, ProgramSpec } from '../guard/index.ts';
import type { EventLog, RunEvent } from './events.ts';
import type { GuardPool } from './guard-pool.ts';
import type { Supervision } from './leadership.ts';
import { runInTerm } from './leadership.ts';
import type { AnyShard, ShardForm } from './shard-form.ts';

export interface ShardProgramsOptions {
  readonly guards: GuardPool;
  readonly events: Pick<EventLog, 'emit'>;
  readonly spec: ProgramSpec;
  readonly stopTimeoutMs: number;
}

export class ShardPrograms implements ShardForm {
  readonly finished: Promise<ProgramExit> = new Promise(() => {});
  readonly #options: ShardProgramsOptions;
  readonly #runs = new Set<Supervision>();
  #isLeaving = false;

  constructor(options: ShardProgramsOptions) {
    this.#options = options;
  }

  async own(shard: AnyShard, term: ShardTerm<AnyShard>): Promise<void> {
    if (this.#isLeaving) return;
    const { guards, events, spec, stopTimeoutMs } = this.#options;
    const env = {
      ...spec.env,
      INCUMBENT_SHARD: String(shard),
      INCUMBENT_TOKEN: term.token.toString(),
    };
    await guards.use(async (guard) => {
      const run: Supervision = {
        ...{ guard, stopTimeoutMs, hasSeats: false, running: undefined },
        events: { emit: (event) => events.emit(ofShard(shard, event)) },
        interrupted: () => false,
      };
      this.#runs.add(run);
      try {
        await runInTerm(programTerm(term), { ...spec, env }, run);
      } finally {
        this.#runs.delete(run);
      }
    });
  }

  leave(): void {
    this.#isLeaving = true;
  }

  signal(name: ForwardedSignal): void {
    for (const { running } of this.#runs) running?.signal(name);
  }

  async close(): Promise<undefined> {}
}

/** No death is proved while programs act: `actors: 'declared'`. So there are no actors to declare. */
function programTerm(term: ShardTerm<AnyShard>) {
  const { token, signal } = term;
  return { token, signal, resign: () => term.resign(), declareActors: async () => {} };
}

export function ofShard(shard: AnyShard, { event, sentence, fields }: RunEvent): RunEvent {
  return {
    event,
    ...(sentence !== undefined && { sentence: `shard ${shard}: ${sentence}` }),
    fields: { shard, ...fields },
  };
}
