/** Steers one service that already runs: leads for it while it is healthy, and fences others. */
import { constants, hostname } from 'node:os';
import type { Deadline, Election, LeadOptions, Term, UncleanLeader } from 'incumbent';
import { exitCodes } from '../failure.ts';
import type { EventLog } from '../run/events.ts';
import { describe } from '../run/events.ts';
import type { GuardKeeper } from '../run/guard-keeper.ts';
import { describeExit, runGuarded } from '../run/leadership.ts';
import type { LiveStatus } from '../run/listen.ts';
import { reachStore, sleep } from '../run/reach-store.ts';
import { within } from '../within.ts';
import type { Call, CallContext } from './calls.ts';
import { asProgram, lookAtHealth, run } from './calls.ts';
import type { FenceMethod, SshOptions } from './fencing.ts';
import { fenceProgram, fenceUntilOne } from './fencing.ts';
import type { ProcessGuard } from './process-guard.ts';
import type { ServiceEvent, ServiceState } from './service-state.ts';
import { isSettled, nextServiceState } from './service-state.ts';

export interface AgentOptions {
  readonly health: Call;
  readonly becomeActive: Call;
  readonly becomeStandby: Call;
  readonly calls: CallContext;
  readonly fences: readonly FenceMethod[];
  readonly ssh: SshOptions;
  readonly candidate: { readonly id: string; readonly addresses: readonly string[] };
  readonly healthEveryMs: number;
  readonly activeTimeoutMs: number;
  readonly standbyTimeoutMs: number;
  readonly fenceTimeoutMs: number;
  /** The store has servers, of which another may serve when one fails. */
  readonly hasServers: boolean;
}

/** The entry of the candidate's metadata that says on which machine its service runs. */
export const hostKey = 'service-host';
/** A command that may still have its effect ends with this code (EX_TEMPFAIL). */
const unsureCode = 75;
const never: AbortSignal = new AbortController().signal;

/** `become-active` has not made the service active. */
class ActivationError extends Error {
  override readonly name: string = 'ActivationError';
  /** The command was cut off: the service may still become active. */
  readonly isUnsure: boolean;

  constructor(message: string, isUnsure: boolean) {
    super(message);
    this.isUnsure = isUnsure;
  }
}

export class Agent {
  readonly #election: Election;
  readonly #guard: GuardKeeper;
  readonly #processGuard: ProcessGuard | undefined;
  readonly #events: EventLog;
  readonly #options: AgentOptions;
  readonly #stop = new AbortController();
  #state: ServiceState = { role: 'neutral' };
  #standby: Promise<boolean> | undefined;
  #term: Term | undefined;
  #interruptedBy: NodeJS.Signals | undefined;
  #lostGuard = false;
  #believes = false;
  #lastTold = '';
  #onDisbelief: () => void = () => {};

  constructor(
    election: Election,
    guard: GuardKeeper,
    processGuard: ProcessGuard | undefined,
    events: EventLog,
    options: AgentOptions,
  ) {
    this.#election = election;
    this.#guard = guard;
    this.#processGuard = processGuard;
    this.#events = events;
    this.#options = options;
  }

  /** Until a signal ends it. @returns the exit code */
  async run(campaign: LeadOptions): Promise<number> {
    const removeListeners = this.#listenToSignals();
    this.#events.follow(() => !isSettled(this.#state), true);
    void this.#processGuard?.lost.then((error) => {
      // Without it nothing would kill the service if we died now.
      this.#tell('guard-lost', `${error.message}: leadership is given up, and the agent ends`);
      this.#lostGuard = true;
      this.#stop.abort(error);
    });
    try {
      await reachStore(this.#election, this.#options.hasServers, this.#stop.signal);
      return await this.#election.lead((term) => this.#work(term), {
        ...campaign,
        signal: this.#stop.signal,
        // Without a method the guards kill, within a belief that a successor waits for anyway.
        ...(this.#options.fences.length === 0
          ? {}
          : { onUnclean: (target, { signal }) => this.#fence(target, signal) }),
      });
    } catch (error) {
      if (this.#interruptedBy === undefined) {
        if (this.#lostGuard) return exitCodes.temporary;
        throw error;
      }
      return 128 + constants.signals[this.#interruptedBy];
    } finally {
      removeListeners();
      this.#stop.abort(new Error('the agent ends'));
      await this.#election.close();
      await this.#guard.close();
      this.#processGuard?.close();
      await this.#events.close();
    }
  }

  /** Belief was extended, or found to be shorter; undefined: it is over. */
  belief(deadline: Deadline | undefined): void {
    this.#guard.belief(deadline);
    this.#processGuard?.belief(deadline);
    this.#believes = deadline !== undefined;
    if (deadline !== undefined) return;
    // Work that has not settled by now leaves its seat to run out.
    this.#enter({ type: 'belief-over' });
    this.#onDisbelief();
  }

  /** The guard has killed the service, because belief was nearly over. */
  killed(): void {
    this.#enter({ type: 'killed' });
    this.#tell(
      'killed',
      'the service was killed: the term is over, and it was not standby in time',
    );
    this.#term?.resign();
  }

  /** For the health gate. @throws when this candidate may not lead now */
  async check(signal: AbortSignal): Promise<void> {
    // First: a service that a dead agent has left active must not stay active, healthy or not.
    if (this.#state.role === 'neutral') await this.#makeStandby();
    const { health, calls } = this.#options;
    const look = await lookAtHealth(health, calls, signal);
    this.#enter({ type: 'health', health: look.health });
    if (look.health !== 'healthy') {
      const words = look.health === 'unhealthy' ? 'is not well' : 'does not respond';
      const reason = signal.aborted ? signal.reason : look.error;
      throw new Error(`the service ${words}: ${describe(reason)}`);
    }
    if (this.#state.role === 'neutral') throw new Error('the service has not become standby yet');
  }

  status(): LiveStatus {
    const term = this.#term;
    const { role } = this.#state;
    const leading = role === 'active' && term?.isLeading() === true;
    return {
      leading,
      ready: leading && term?.isReady === true,
      healthy: role !== 'neutral' && !(role === 'active' && term?.state === 'uncertain'),
      fields: {
        election: this.#election.name,
        candidate: this.#events.candidate,
        role,
        token: 'token' in this.#state ? this.#state.token : null,
        remainingMs: Math.round(term?.remaining() ?? 0),
      },
    };
  }

  /** One term. Returns when the service is certainly not active for it any more. */
  async #work(term: Term): Promise<never> {
    this.#term = term;
    let isUnsure = false;
    try {
      // The service went away between the win and here.
      if (this.#state.role !== 'standby') throw new ActivationError('it is not standby', false);
      this.#enter({ type: 'term-begins', token: term.token });
      await this.#processGuard?.arm();
      this.#tell('activating', `making the service active (token ${term.token})`, {
        token: term.token,
      });
      await this.#activate(term);
      this.#enter({ type: 'activated' });
      this.#tell('active', `the service is active (token ${term.token})`, { token: term.token });
      await term.ready();
      await aborted(term.signal);
    } catch (error) {
      isUnsure = error instanceof ActivationError && error.isUnsure;
      if (!term.signal.aborted) {
        const fields = { token: term.token, error: describe(error), isUnsure };
        this.#tell('activation-failed', `the service is not active: ${fields.error}`, fields);
      }
    }
    term.resign();
    if (!isSettled(this.#state)) await this.#leaveActive(isUnsure);
    this.#processGuard?.disarm();
    throw term.signal.reason;
  }

  /** @throws ActivationError */
  async #activate(term: Term): Promise<void> {
    const { becomeActive, activeTimeoutMs, calls } = this.#options;
    const env = { ...calls.env, INCUMBENT_TOKEN: term.token.toString() };
    const spec = asProgram(becomeActive, { ...calls, env });
    // A command of ours that is frozen with us could have its effect when another one leads. So
    // the guard holds it.
    const name = becomeActive.option;
    try {
      await within(activeTimeoutMs, name, term.signal, async (signal) => {
        const exit = await runGuarded(this.#guard, spec, signal);
        if (exit.code === 0 && exit.because === 'itself') return;
        const isUnsure = exit.because !== 'itself' || exit.code === unsureCode;
        throw new ActivationError(`${name}: ${describeExit(exit)}`, isUnsure);
      });
    } catch (error) {
      if (error instanceof ActivationError) throw error;
      // Too late, or the term has ended: whether the command was begun is not known here.
      throw new ActivationError(describe(error), true);
    }
  }

  /** The term is over: the service becomes standby, or is killed, or stays for others to fence. */
  async #leaveActive(isUnsure: boolean): Promise<void> {
    // An attempt from before the term says nothing about what came after it.
    await this.#standby;
    if (isSettled(this.#state)) return;
    this.#enter({ type: 'term-ends', cutOff: isUnsure });
    // It may have been over first, as after a stall.
    if (!this.#believes) this.#enter({ type: 'belief-over' });
    for (;;) {
      const isStandby = await this.#makeStandby();
      if (isSettled(this.#state)) return;
      if (this.#processGuard !== undefined && (await this.#kill(this.#processGuard))) return;
      if (isStandby) {
        // The next leader shall fence this service, so the seat must not be given back as clean.
        await this.#disbelief();
        return;
      }
      if (this.#stop.signal.aborted && !this.#believes) return;
      await sleep(this.#options.healthEveryMs, never);
    }
  }

  /** Resolves when belief is over. */
  #disbelief(): Promise<void> {
    if (!this.#believes) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onDisbelief = resolve;
    });
  }

  /** @returns false when the process cannot be killed */
  async #kill(guard: ProcessGuard): Promise<boolean> {
    try {
      await guard.kill();
    } catch (error) {
      this.#tell('trouble', describe(error));
      return false;
    }
    if (isSettled(this.#state)) return true;
    this.#enter({ type: 'killed' });
    this.#tell('killed', 'the service was killed: it did not become standby');
    return true;
  }

  /** One attempt at a time, within its bound. @returns whether the service has confirmed it */
  #makeStandby(): Promise<boolean> {
    this.#standby ??= this.#tryStandby().finally(() => {
      this.#standby = undefined;
    });
    return this.#standby;
  }

  async #tryStandby(): Promise<boolean> {
    const { becomeStandby, standbyTimeoutMs, calls } = this.#options;
    try {
      await within(standbyTimeoutMs, becomeStandby.option, never, (signal) =>
        run(becomeStandby, 'POST', calls, signal),
      );
    } catch (error) {
      const fields = { error: describe(error) };
      this.#tell('standby-failed', `the service has not become standby: ${fields.error}`, fields);
      return false;
    }
    const was = this.#state.role;
    this.#enter({ type: 'became-standby' });
    if (was !== 'standby') this.#tell('standby', 'the service is standby');
    return true;
  }

  /** @throws when no method has succeeded: the takeover fails, and the seat is given up */
  async #fence(target: UncleanLeader, signal: AbortSignal): Promise<void> {
    const { fences, fenceTimeoutMs, calls, ssh } = this.#options;
    const told = { predecessor: target.id };
    if (this.#isOwn(target) && (await this.#makeStandby())) {
      this.#tell('fenced', `the service of "${target.id}" is this one, and standby`, told);
      return;
    }
    const attempt = async (method: FenceMethod) => {
      const program = fenceProgram(method, target, calls, ssh);
      if ('unusable' in program) throw new Error(program.unusable);
      this.#tell('fencing', `fencing ${target.id}: ${method.text}`, {
        ...told,
        method: method.text,
      });
      await within(fenceTimeoutMs, 'it', signal, async (bound) => {
        const exit = await runGuarded(this.#guard, program, bound);
        if (exit.code !== 0) throw new Error(describeExit(exit));
      });
    };
    const method = await fenceUntilOne(fences, target, attempt, signal);
    this.#tell('fenced', `fenced ${target.id}: ${method.text}`, { ...told, method: method.text });
  }

  /** An agent before us on this machine led for the service that we steer now. */
  #isOwn({ id, addresses, metadata }: UncleanLeader): boolean {
    const { candidate } = this.#options;
    return (
      id === candidate.id &&
      addresses.length > 0 &&
      addresses.join('\n') === candidate.addresses.join('\n') &&
      metadata[hostKey] === hostname()
    );
  }

  #enter(event: ServiceEvent): void {
    this.#state = nextServiceState(this.#state, event);
  }

  #tell(event: string, sentence: string, fields: Readonly<Record<string, unknown>> = {}): void {
    // The same failure again and again is one line until something else happens.
    if (event === 'standby-failed' && sentence === this.#lastTold) return;
    this.#lastTold = sentence;
    this.#events.emit({ event, sentence, fields: { ...fields, role: this.#state.role } });
  }

  #listenToSignals(): () => void {
    const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
    const listeners = names.map((name) => {
      const listener = () => {
        this.#interruptedBy ??= name;
        this.#stop.abort(new Error(`ended by ${name}`));
      };
      process.on(name, listener);
      return () => process.off(name, listener);
    });
    return () => {
      for (const remove of listeners) remove();
    };
  }
}

/** Resolves when the signal has aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}
