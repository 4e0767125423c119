/** Steers one service that already runs: leads for it while it is healthy, and fences others. */
import { constants } from 'node:os';
import type { Deadline, Election, LeadOptions, Term, UncleanLeader } from 'incumbent';
import { TakeoverFailedError } from 'incumbent';
import { exitCodes } from '../failure.ts';
import type { ProgramExit, ProgramSpec } from '../guard/index.ts';
import { GuardError } from '../guard/index.ts';
import type { EventLog } from '../run/events.ts';
import { describe } from '../run/events.ts';
import type { GuardKeeper } from '../run/guard-keeper.ts';
import { describeExit } from '../run/leadership.ts';
import type { LiveStatus } from '../run/listen.ts';
import { reachStore, sleep } from '../run/reach-store.ts';
import { within } from '../within.ts';
import type { Call, CallContext } from './calls.ts';
import { asProgram, lookAtHealth, mayHaveEffect, run } from './calls.ts';
import type { FenceMethod, SshOptions } from './fencing.ts';
import { fenceProgram, fenceUntilOne } from './fencing.ts';
import { listenersAt } from './listeners.ts';
import type { Machine } from './machine.ts';
import { isOnThis, metadataKeys } from './machine.ts';
import type { ProcessGuard } from './process-guard.ts';
import { runHeld, StuckError } from './run-held.ts';
import type { Health, ServiceEvent, ServiceState } from './service-state.ts';
import { isSettled, nextServiceState } from './service-state.ts';

export interface AgentOptions {
  readonly health: Call;
  readonly becomeActive: Call;
  readonly becomeStandby: Call;
  readonly calls: CallContext;
  readonly fences: readonly FenceMethod[];
  readonly ssh: SshOptions;
  readonly candidate: {
    readonly id: string;
    readonly addresses: readonly string[];
    readonly metadata: Readonly<Record<string, string>>;
  };
  readonly machine: Machine;
  /** The ports by which others fence this service, where they use sshfence. */
  readonly fencedAtPorts: readonly number[];
  readonly healthEveryMs: number;
  readonly activeTimeoutMs: number;
  readonly standbyTimeoutMs: number;
  readonly fenceTimeoutMs: number;
  /** The store has servers, of which another may serve when one fails. */
  readonly hasServers: boolean;
}

/** A service that has just become active may be about to listen. */
const listenerTries = 20;
const listenerPauseMs = 100;
/** From one attempt to make a service standby to the next, or to the end of belief. */
const longestPauseMs = 1_000;
const never: AbortSignal = new AbortController().signal;

/** `become-active` has not made the service active. */
class ActivationError extends Error {
  override readonly name: string = 'ActivationError';
  /** The command was cut off, or says so: the service may still become active. */
  readonly isUnsure: boolean;

  constructor(message: string, isUnsure: boolean) {
    super(message);
    this.isUnsure = isUnsure;
  }
}

class ReplacedError extends ActivationError {
  constructor() {
    super('its process has ended meanwhile', true);
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
  /** The guard of `--pid` is gone or silent. */
  #lostGuard = false;
  /** A `become-active` does not die of KILL. Whatever else is killed, it may still have its effect. */
  #isStuck = false;
  #believes = false;
  /** The sockets at the port of `--health` while the service is active. Empty: unknown. */
  #listeners: readonly string[] = [];
  #lastTold = '';
  /** Why `--pid` names no process that may be killed, as it was told last. */
  #processTrouble = '';

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
    const goesOn = 'the service is not certainly standby yet';
    this.#events.follow(() => !isSettled(this.#state), true, goesOn);
    void this.#processGuard?.lost.then(async (error) => {
      // Without it nothing would kill the service if we died now.
      this.#tell('guard-lost', `${error.message}: leadership is given up, and the agent ends`);
      this.#lostGuard = true;
      await this.#disownGuard();
      this.#stop.abort(error);
    });
    try {
      await reachStore(
        (signal) => this.#election.leader({ signal, seat: 1 }),
        this.#options.hasServers,
        this.#stop.signal,
      );
      return await this.#election.lead((term) => this.#work(term), {
        ...campaign,
        signal: this.#stop.signal,
        onUnclean: (target, { signal }) => this.#fence(target, signal),
      });
    } catch (error) {
      if (this.#interruptedBy !== undefined) return 128 + constants.signals[this.#interruptedBy];
      if (this.#stop.signal.aborted) return exitCodes.temporary;
      throw error;
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
  }

  /** The guard of `--pid` has killed the service: we have asked, or belief was nearly over. */
  killed(): void {
    this.#enter({ type: 'killed' });
    this.#tell('killed', 'the service was killed: it was not certainly standby in time');
    this.#term?.resign();
  }

  /** The process that was made active has ended. The guard of `--pid` has seen it, or we have. */
  processEnded(): void {
    const before = this.#state;
    this.#enter({ type: 'process-ended' });
    if (this.#state === before) return;
    this.#tell('process-ended', 'the process of the service has ended: its role is unknown now');
    if (!isSettled(this.#state)) this.#term?.resign();
  }

  /** For the health gate. @throws when this candidate may not lead now */
  async check(signal: AbortSignal): Promise<void> {
    // First: a service that a dead agent has left active must not stay active, healthy or not.
    if (this.#state.role === 'neutral') await this.#makeStandby();
    // That may have taken all of the time. A look that was not asked says nothing.
    signal.throwIfAborted();
    const before = this.#state;
    const look = await this.#lookAtHealth(signal);
    // A look that began before the service was made active says nothing about it.
    if (this.#state === before) this.#judge(look.health);
    if (this.#state === before && before.role === 'active') await this.#lookForRestart();
    if (look.health !== 'healthy') {
      const words = look.health === 'unhealthy' ? 'is not well' : 'does not respond';
      const reason: unknown = signal.aborted ? signal.reason : look.error;
      throw new Error(`the service ${words}: ${describe(reason)}`);
    }
    if (this.#state.role === 'neutral') throw new Error('the service has not become standby yet');
    if (this.#state.role === 'standby') await this.#findProcess(this.#state, signal);
  }

  /**
   * Before it campaigns: a candidate whose guard would find no process could not lead, and would only
   * take the seat from a good service.
   * @throws Error
   */
  async #findProcess(before: ServiceState, signal: AbortSignal): Promise<void> {
    try {
      await this.#processGuard?.find(signal);
      this.#processTrouble = '';
    } catch (error) {
      // Won meanwhile: now the guard itself tells.
      if (this.#state !== before) return;
      // The gate tells only its first reason, so it is told here, once.
      const trouble = describe(error);
      const fields = { error: trouble };
      if (trouble !== this.#processTrouble) this.#tell('process-not-found', trouble, fields);
      this.#processTrouble = trouble;
      throw new Error('its process is not found (--pid)');
    }
  }

  #judge(health: Health): void {
    // The guard of --pid tells when a process that was made active has ended.
    const isSame = this.#state.role === 'active' && this.#processGuard !== undefined;
    this.#enter({ type: 'health', health, isSame });
    // Whatever the gate counts. But if it ends the term too, it has the better reason.
    if (this.#state.role === 'stopping') setImmediate(() => this.#term?.resign());
  }

  /** A service that was restarted between two looks answers well, and is not active. */
  async #lookForRestart(): Promise<void> {
    const [state, before] = [this.#state, this.#listeners];
    const now = await this.#listenersOfHealth();
    if (this.#state !== state || now.length === 0) return;
    this.#listeners = now;
    if (before.length > 0 && !now.some((one) => before.includes(one))) this.processEnded();
  }

  async #listenersOfHealth(): Promise<readonly string[]> {
    const { health } = this.#options;
    // The guard of --pid knows the process itself.
    if (health.kind !== 'http' || this.#processGuard !== undefined) return [];
    return (await listenersAt(Number(new URL(health.url).port || 80))) ?? [];
  }

  /** A check may compare the role and the token with its own. */
  #lookAtHealth(signal: AbortSignal) {
    const { health, calls } = this.#options;
    const token = 'token' in this.#state ? this.#state.token.toString() : '';
    const env = { ...calls.env, INCUMBENT_ROLE: this.#state.role, INCUMBENT_TOKEN: token };
    return lookAtHealth(health, { ...calls, env }, signal);
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
      await this.#activate(term);
      this.#enter({ type: 'activated' });
      this.#tell('active', `the service is active (token ${term.token})`, { token: term.token });
      await this.#showActive(term);
      await aborted(term.signal);
    } catch (error) {
      isUnsure = error instanceof ActivationError && error.isUnsure;
      if (!term.signal.aborted) {
        const fields = { token: term.token, error: describe(error), isUnsure };
        this.#tell('activation-failed', `the service is not active: ${fields.error}`, fields);
      }
    }
    if (this.#isStuck) await this.#disownGuard();
    term.resign();
    if (!isSettled(this.#state)) await this.#leaveActive(isUnsure);
    if (!isSettled(this.#state) || this.#isStuck) await this.#endUnclean();
    else this.#processGuard?.disarm();
    throw term.signal.reason;
  }

  /**
   * The next leader shall fence this service, so the seat is left to run out. And no later term may
   * begin with this election handle: it would not count its own record as unclean.
   */
  async #endUnclean(): Promise<void> {
    const words =
      'the service is not certainly standby, now and later: the seat runs out, so that the next ' +
      'leader fences it, and the agent ends';
    this.#tell('unclean', words);
    while (this.#believes) await this.#pause();
    this.#stop.abort(new Error(words));
  }

  /** The next leader shall not count on the guard. Without a store, the record stays as it is. */
  async #disownGuard(): Promise<void> {
    const signal = AbortSignal.timeout(Math.ceil(this.#election.timing.operationTimeoutMs));
    await this.#term?.proclaim({ metadata: this.#metadata() }, { signal }).catch(() => {});
  }

  /** The record of the term shall say it. */
  #metadata(): Readonly<Record<string, string>> {
    return {
      ...this.#options.candidate.metadata,
      ...(this.#state.role === 'active' && { [metadataKeys.activation]: 'done' }),
      ...((this.#lostGuard || this.#isStuck) && { [metadataKeys.guard]: 'none' }),
    };
  }

  /** From standby to `become-active` done. @throws ActivationError */
  async #activate(term: Term): Promise<void> {
    const { becomeActive, activeTimeoutMs, calls } = this.#options;
    const { token } = term;
    const env = { ...calls.env, INCUMBENT_TOKEN: token.toString() };
    const spec = asProgram(becomeActive, { ...calls, env });
    const name = becomeActive.option;
    let isBegun = false;
    try {
      await within(activeTimeoutMs, name, term.signal, async (signal) => {
        await this.#processGuard?.arm(signal);
        // The service went away between the win and here.
        if (this.#state.role !== 'standby') throw new ActivationError('it is not standby', false);
        this.#enter({ type: 'term-begins', token });
        this.#tell('activating', `making the service active (token ${token})`, { token });
        isBegun = true;
        // A command of ours that is frozen with us could have its effect when another one leads.
        // So the guard holds it.
        const exit = await this.#runHeld(spec, signal).catch((error: unknown) => {
          this.#isStuck ||= error instanceof StuckError;
          throw error;
        });
        if (exit.code !== 0 || exit.because !== 'itself') {
          throw new ActivationError(`${name}: ${describeExit(exit)}`, mayHaveEffect(exit));
        }
        // It was the one that has got the call, and no other one that was started meanwhile.
        if ((await this.#processGuard?.isSame(signal)) === false) throw new ReplacedError();
      });
    } catch (error) {
      if (error instanceof ActivationError) throw error;
      throw new ActivationError(describe(error), isBegun && !isNotStarted(error));
    }
    await this.#requireListeners(term.signal);
    this.#listeners = await this.#listenersOfHealth();
    if (this.#state.role !== 'activating') throw new ReplacedError();
  }

  /** @throws ActivationError when sshfence would take this service for one that does not run */
  async #requireListeners(signal: AbortSignal): Promise<void> {
    const ports = this.#options.fencedAtPorts;
    let missing: number | undefined;
    for (let tries = 0; tries < listenerTries; tries += 1) {
      const found = await Promise.all(ports.map(listenersAt));
      missing = ports.find((_, index) => found[index]?.length === 0);
      if (missing === undefined) return;
      await sleep(listenerPauseMs, signal);
    }
    throw new ActivationError(
      `nothing listens at port ${missing} here, the one of --address: sshfence would find no service ` +
        'there, and take it for stopped',
      false,
    );
  }

  /** Observers, and an agent that is started after us, are told. */
  async #showActive(term: Term): Promise<void> {
    // One write shows both.
    await Promise.all([term.proclaim({ metadata: this.#metadata() }), term.ready()]);
  }

  /** Runs a command under the guard. One that does not die is told, and left to its guard. */
  async #runHeld(spec: ProgramSpec, signal: AbortSignal): Promise<ProgramExit> {
    try {
      return await runHeld(this.#guard, spec, signal);
    } catch (error) {
      if (error instanceof StuckError) {
        this.#tell('trouble', `${error.message}: nothing waits for it any more`);
      }
      throw error;
    }
  }

  /** The term is over: the service becomes standby, or is killed, or stays for others to fence. */
  async #leaveActive(isUnsure: boolean): Promise<void> {
    // An attempt from before the term says nothing about what came after it.
    await this.#standby;
    if (isSettled(this.#state)) return;
    this.#enter({ type: 'term-ends', isUnsure });
    for (;;) {
      await this.#makeStandby();
      if (isSettled(this.#state)) return;
      if (this.#processGuard !== undefined && !this.#lostGuard) {
        await this.#kill(this.#processGuard, isUnsure);
      }
      if (isSettled(this.#state)) return;
      if ((isUnsure || this.#stop.signal.aborted) && !this.#believes) return;
      await this.#pause();
    }
  }

  #pause(): Promise<void> {
    return sleep(Math.min(this.#options.healthEveryMs, longestPauseMs), never);
  }

  /** `killed` is called when no process is left. */
  async #kill(guard: ProcessGuard, isUnsure: boolean): Promise<void> {
    try {
      // A process that was started meanwhile has got no become-active, unless that may be late.
      await guard.kill(isUnsure);
    } catch (error) {
      this.#tell('trouble', describe(error));
    }
  }

  /** One attempt at a time, within its bound. @returns whether the service is standby now */
  #makeStandby(): Promise<boolean> {
    this.#standby ??= this.#tryStandby().finally(() => {
      this.#standby = undefined;
    });
    return this.#standby;
  }

  async #tryStandby(): Promise<boolean> {
    const { becomeStandby, standbyTimeoutMs, calls } = this.#options;
    const before = this.#state;
    try {
      await within(standbyTimeoutMs, becomeStandby.option, never, (signal) =>
        run(becomeStandby, 'POST', calls, signal),
      );
    } catch (error) {
      const fields = { error: describe(error) };
      this.#tell('standby-failed', `the service has not become standby: ${fields.error}`, fields);
      return false;
    }
    // An answer from before something else happened says nothing about what came after it.
    if (this.#state !== before) return false;
    this.#enter({ type: 'became-standby' });
    if (this.#state !== before) this.#tell('standby', 'the service is standby');
    return this.#state.role === 'standby';
  }

  /** @throws when no method has succeeded: the takeover fails, and the seat is given up */
  async #fence(target: UncleanLeader, signal: AbortSignal): Promise<void> {
    const { fences, fenceTimeoutMs, calls, ssh, machine } = this.#options;
    const told = { predecessor: target.id };
    if (this.#isOwn(target) && (await this.#makeStandby())) {
      this.#tell('fenced', `the service of "${target.id}" is this one, and standby`, told);
      return;
    }
    if (fences.length === 0) {
      // A guard has killed it, within a belief that we have waited for.
      if (target.metadata[metadataKeys.guard] === 'pid') return;
      throw this.#notFenced(
        target,
        'its agent had no guard (--pid), and this agent has no --fence. Make sure that its service is not ' +
          "active, then start this agent once with --fence 'shell:true'",
      );
    }
    const attempt = async (method: FenceMethod) => {
      const program = fenceProgram(method, target, calls, ssh, machine);
      if ('unusable' in program) throw new Error(program.unusable);
      const fields = { ...told, method: method.name };
      this.#tell('fencing', `fencing ${target.id}: ${method.name}`, fields);
      await within(fenceTimeoutMs, 'it', signal, async (bound) => {
        const exit = await this.#runHeld(program, bound);
        if (exit.code !== 0) throw new Error(describeExit(exit));
      });
    };
    const method = await fenceUntilOne(fences, attempt, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw this.#notFenced(target, describe(error));
    });
    this.#tell('fenced', `fenced ${target.id}: ${method.name}`, { ...told, method: method.name });
    if (method.kind !== 'sshfence' || target.id !== this.#options.candidate.id) return;
    // It was our own service, which an agent before us has left. The next look makes it standby.
    this.#enter({ type: 'killed' });
  }

  /** The record shows it, so that operators see it from anywhere. */
  #notFenced({ id }: UncleanLeader, why: string): TakeoverFailedError {
    return new TakeoverFailedError(this.#election.name, `"${id}" could not be fenced: ${why}`);
  }

  /**
   * An agent before us on this machine led for the service that we steer now, and `become-active` was
   * done. Without that it may still have its effect, so `become-standby` is no proof.
   */
  #isOwn({ id, addresses, metadata }: UncleanLeader): boolean {
    const { candidate, machine } = this.#options;
    return (
      id === candidate.id &&
      addresses.length > 0 &&
      addresses.join('\n') === candidate.addresses.join('\n') &&
      isOnThis(machine, metadata) &&
      metadata[metadataKeys.activation] === 'done'
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

/** The gate of the command was not opened. */
function isNotStarted(error: unknown): boolean {
  return (
    error instanceof GuardError && (error.code === 'CANNOT_START' || error.code === 'BELIEF_OVER')
  );
}

/** Resolves when the signal has aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}
