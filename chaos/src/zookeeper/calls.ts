import type { ZooKeeper } from '@incumbent/zookeeper';
import type { Stalls } from '../harness/time.ts';
import { monotonicMs } from '../harness/time.ts';
import type { Findings } from './findings.ts';
import { slackMs } from './judges.ts';
import type { Outcome } from './outcome.ts';
import { describe, isTrouble } from './outcome.ts';

export interface CallPlan<T> {
  readonly what: string;
  readonly boundMs: number;
  readonly start: () => Promise<T>;
  /** One request with the client's common bound: its reply comes in the order of the calls. */
  readonly ordered?: boolean;
  /** Whether the call may fail so, beyond what any call may. */
  readonly mayFail?: (error: unknown) => boolean;
}

interface Open {
  readonly what: string;
  readonly startedMs: number;
  readonly boundMs: number;
  overdue: boolean;
}

/** Watches every call of one client: that it settles, in time, in order, and with what. */
export class Calls {
  /** When the latest request was sent that a server has answered. */
  lastAcknowledgedMs: number = monotonicMs();
  made = 0;
  readonly #name: string;
  readonly #client: () => ZooKeeper;
  readonly #findings: Findings;
  readonly #stalls: Stalls;
  readonly #open = new Set<Open>();
  #watchdog: ReturnType<typeof setInterval> | undefined;
  #ordered = 0;
  #settledOrdered = 0;
  #lastZxid = 0n;

  constructor(name: string, client: () => ZooKeeper, findings: Findings, stalls: Stalls) {
    this.#name = name;
    this.#client = client;
    this.#findings = findings;
    this.#stalls = stalls;
  }

  get outstanding(): number {
    return [...this.#open].filter(({ overdue }) => !overdue).length;
  }

  /** A call that never settles has to be told of while it does not. */
  start(): void {
    this.#watchdog = setInterval(() => this.#findOverdue(), 200);
  }

  stop(): void {
    clearInterval(this.#watchdog);
  }

  /** Never rejects. */
  async call<T>(plan: CallPlan<T>): Promise<Outcome<T>> {
    this.made += 1;
    const open: Open = {
      what: plan.what,
      startedMs: monotonicMs(),
      boundMs: plan.boundMs,
      overdue: false,
    };
    this.#open.add(open);
    let place = 0;
    if (plan.ordered === true) {
      this.#ordered += 1;
      place = this.#ordered;
    }
    return plan.start().then(
      (value): Outcome<T> => {
        this.#settle(open, place);
        this.#acknowledge(value);
        return { ok: true, value };
      },
      (error: unknown): Outcome<T> => {
        this.#settle(open, place);
        const fine = isTrouble(error) || plan.mayFail?.(error) === true;
        this.#findings.judge(
          'errors',
          fine ? undefined : `${this.#name} ${plan.what}: ${describe(error)}`,
        );
        return { ok: false, error };
      },
    );
  }

  #settle(open: Open, place: number): void {
    this.#open.delete(open);
    if (!open.overdue) this.#findings.judge('settles', this.#late(open));
    if (place > 0) {
      this.#findings.judge(
        'order',
        place === this.#settledOrdered + 1
          ? undefined
          : `${this.#name} ${open.what}: call ${place} settled after call ${this.#settledOrdered}`,
      );
      this.#settledOrdered = place;
    }
    const { lastZxid } = this.#client();
    this.#findings.judge(
      'forward',
      lastZxid >= this.#lastZxid
        ? undefined
        : `${this.#name} from ${this.#lastZxid} to ${lastZxid}`,
    );
    this.#lastZxid = lastZxid;
  }

  #acknowledge(value: unknown): void {
    const { sentAt } = (value ?? {}) as { sentAt?: { monotonicMs: number } };
    if (sentAt !== undefined) {
      this.lastAcknowledgedMs = Math.max(this.lastAcknowledgedMs, sentAt.monotonicMs);
    }
  }

  #findOverdue(): void {
    for (const open of this.#open) {
      const late = open.overdue ? undefined : this.#late(open);
      if (late === undefined) continue;
      open.overdue = true;
      this.#findings.judge('settles', `${late}, and it has not settled yet`);
    }
  }

  #late({ what, startedMs, boundMs }: Open): string | undefined {
    const nowMs = monotonicMs();
    const tookMs = nowMs - startedMs;
    if (tookMs <= boundMs + slackMs) return undefined;
    const ranMs = tookMs - this.#stalls.ms(startedMs, nowMs);
    if (ranMs <= boundMs + slackMs) return undefined;
    return `${this.#name} ${what}: ${ranMs.toFixed(0)} ms (stalls left out), its bound is ${boundMs}`;
  }
}
