import { constants } from 'node:os';
import type { Shards, ShardTerm } from '@incumbent/shards';
import type { ForwardedSignal, ProgramExit } from '../guard/index.ts';
import { monotonicMs } from '../guard/protocol.ts';
import { deferred } from '../guard/wait.ts';
import type { ListenAddress } from '../options.ts';
import { span } from '../output/span.ts';
import type { EventLog } from './events.ts';
import type { GuardPool } from './guard-pool.ts';
import type { Listener, LiveStatus } from './listen.ts';
import { reachStore, sleep } from './reach-store.ts';
import { codeOf, RestartPause } from './restarts.ts';
import type { AnyShard, ShardForm } from './shard-form.ts';

export interface ShardsRunnerOptions {
  /** A handle whose work is that of the form. */
  readonly open: (own: ShardForm['own']) => Shards<AnyShard>;
  readonly form: () => ShardForm;
  readonly guards: GuardPool;
  readonly events: EventLog;
  readonly restart: 'no' | 'on-failure' | 'always';
  readonly hasServers: boolean;
  /** The name of the set of shards. */
  readonly name: string;
  readonly listen?: ListenAddress;
}

const forwarded = ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;

/** Takes part in the shards until it is told to leave, or until the one program has done its job. */
export class ShardsRunner {
  readonly #options: ShardsRunnerOptions;
  readonly #stop = new AbortController();
  /** TERM: the shards are moved one after another. */
  readonly #toldToLeave = deferred<void>();
  /** INT, or a second signal: all programs stop at once. */
  readonly #toldToStop = deferred<void>();
  #form: ShardForm | undefined;
  #shards: Shards<AnyShard> | undefined;
  /** Those whose work has not settled. */
  readonly #terms = new Set<ShardTerm<AnyShard>>();

  constructor(options: ShardsRunnerOptions) {
    this.#options = options;
  }

  /** @returns the exit code */
  async run(): Promise<number> {
    const { events, guards, restart } = this.#options;
    const removeListeners = this.#listenToSignals();
    const pause = new RestartPause();
    let listener: Listener | undefined;
    try {
      listener = await this.#listen();
      for (;;) {
        const startedMs = monotonicMs();
        const code = await this.#takePart();
        if (this.#stop.signal.aborted || restart === 'no') return code;
        if (restart === 'on-failure' && code === 0) return code;
        const backoffMs = pause.next(startedMs);
        events.emit({
          event: 'restarting',
          sentence: `the program ended with ${code}; taking part again in ${span(backoffMs)}`,
          fields: { code, backoffMs },
        });
        await sleep(backoffMs, this.#stop.signal).catch(() => {});
        if (this.#stop.signal.aborted) return code;
      }
    } finally {
      listener?.close();
      removeListeners();
      await guards.close();
      await events.close();
    }
  }

  async #listen(): Promise<Listener | undefined> {
    const { listen: address, events, name } = this.#options;
    if (address === undefined) return undefined;
    const { listen } = await import('./listen.ts');
    const count = () => this.#shards?.owned().length ?? 0;
    const listener = await listen(address, () => this.#status(), { name, count });
    const { url } = listener;
    events.emit({ event: 'listening', sentence: `listening on ${url}`, fields: { url } });
    return listener;
  }

  #status(): LiveStatus {
    const shards = this.#shards;
    const owned = shards?.owned() ?? [];
    return {
      healthy: isHealthy([...this.#terms], shards?.timing.stopMarginMs ?? 0),
      fields: {
        shards: this.#options.name,
        member: this.#options.events.candidate,
        leaving: this.#stop.signal.aborted,
        owns: owned.length,
        owned: owned.toSorted(byShard),
      },
    };
  }

  /** From joining to leaving. @returns the exit code of the program; 0: it had none of its own */
  async #takePart(): Promise<number> {
    const { open, form: make, events, hasServers } = this.#options;
    const form = make();
    const shards = open(async (shard, term) => {
      this.#terms.add(term);
      try {
        await form.own(shard, term);
      } finally {
        this.#terms.delete(term);
      }
    });
    this.#shards = shards;
    const refused = deferred<never>();
    shards.joined.then(
      () =>
        events.emit({ event: 'joined', sentence: `takes part in the shards of ${shards.name}` }),
      // Rejects as well when this process leaves before it has joined.
      (error: Error) => refused.reject(error),
    );
    this.#form = form;
    let exit: ProgramExit | undefined;
    try {
      await reachStore((signal) => shards.view({ signal }), hasServers, this.#stop.signal);
      const isTold = this.#toldToLeave.promise.then(() => true);
      if (await Promise.race([form.finished.then(() => false), refused.promise, isTold])) {
        form.leave();
        events.emit({ event: 'leaving', sentence: 'gives its shards to others' });
        await Promise.race([shards.drain(), this.#toldToStop.promise]);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    } finally {
      form.leave();
      await shards.close();
      exit = await form.close();
      this.#form = undefined;
      this.#shards = undefined;
    }
    return exit === undefined ? 0 : codeOf(exit);
  }

  #listenToSignals(): () => void {
    const listeners: [NodeJS.Signals, () => void][] = [
      ['SIGTERM', () => this.#interrupt('SIGTERM')],
      ['SIGINT', () => this.#interrupt('SIGINT')],
      ...forwarded.map((name): [NodeJS.Signals, () => void] => [name, () => this.#pass(name)]),
    ];
    for (const [name, listener] of listeners) process.on(name, listener);
    return () => {
      for (const [name, listener] of listeners) process.off(name, listener);
    };
  }

  #interrupt(name: 'SIGTERM' | 'SIGINT'): void {
    if (name === 'SIGINT' || this.#stop.signal.aborted) this.#toldToStop.resolve();
    this.#stop.abort(new Error(`ended by ${name} (${constants.signals[name]})`));
    this.#toldToLeave.resolve();
  }

  #pass(name: ForwardedSignal): void {
    this.#form?.signal(name);
  }
}

/**
 * Each term is confirmed. One that is given up by choice is, until its programs have ended.
 * @param terms whose work has not settled
 */
export function isHealthy(
  terms: readonly Pick<ShardTerm, 'state' | 'remaining'>[],
  stopMarginMs: number,
): boolean {
  return terms.every((term) => {
    const { state } = term;
    if (state === 'stopping') return term.remaining() > stopMarginMs;
    return state === 'leading';
  });
}

const names = new Intl.Collator('en', { numeric: true });

function byShard(a: AnyShard, b: AnyShard): number {
  return names.compare(String(a), String(b));
}
