import { setTimeout as sleep } from 'node:timers/promises';
import type { ZooKeeper } from '@incumbent/zookeeper';
import { NoNodeError } from '@incumbent/zookeeper';
import { monotonicMs, until } from '../harness/time.ts';
import { CandidateProcess } from './candidate.ts';
import type { Said } from './judge.ts';
import { overlapMs, tokensRise } from './judge.ts';
import type { CandidatePlan, Spell } from './messages.ts';
import type { Network } from './network.ts';
import type { ElectionPlan } from './plan.ts';

/** H as a part of the session timeout: the default of the library. */
const beliefPart = 0.4;
/** With a wide margin over what anything takes that is not judged. */
const patienceMs = 60_000;

export interface Surroundings {
  readonly network: Network;
  /** `host:port` of the server that is struck, the only one that A reaches. */
  readonly struck: string;
  /** Of the others. */
  readonly majority: string;
  /** A client of theirs. */
  readonly operator: ZooKeeper;
  readonly tickMs: number;
  readonly broken: CandidatePlan['broken'];
}

export interface Outcome {
  readonly plan: ElectionPlan;
  /** How long two said that they led. */
  readonly overlapMs: number;
  /** When B led, after the fault. */
  readonly takeoverMs: number;
  /** T + H + 2 ticks. */
  readonly boundMs: number;
  /** From A's last word to B's first; undefined where A did not lead. */
  readonly apartMs: number | undefined;
  readonly tokensRise: boolean;
  /** Why its scenario did not happen: then it is only judged for two leaders. */
  readonly notPlayed: string | undefined;
  /** Between two looks of a leader at what it believes. */
  readonly longestGapMs: number;
}

/** One election: A reaches the server that is struck and no other, B is on the other side. */
export class ElectionUnderFault {
  readonly plan: ElectionPlan;
  /** Everybody that was started, for whoever cleans up. */
  readonly candidates: CandidateProcess[] = [];
  readonly #name: string;
  readonly #around: Surroundings;
  #placeGoneMs: number | undefined;
  #notPlayed: string | undefined;

  constructor(plan: ElectionPlan, name: string, around: Surroundings) {
    this.plan = plan;
    this.#name = name;
    this.#around = around;
  }

  /** When A's place was seen to be gone. */
  get placeGoneMs(): number | undefined {
    return this.#placeGoneMs;
  }

  get isQuiet(): boolean {
    return this.plan.scenario.startsWith('quiet');
  }

  get a(): CandidateProcess {
    return this.#get('A');
  }

  get b(): CandidateProcess {
    return this.#get('B');
  }

  /** Resolves when all are in the queue: A leads, or is the next. */
  async assemble(): Promise<void> {
    const { struck, majority } = this.#around;
    if (this.isQuiet) await this.#start('predecessor', 'hub', majority).first('leading');
    const a = this.#start('A', 'a', struck);
    if (this.isQuiet) await this.#queueOf(2);
    else await a.first('leading');
    this.#start('B', 'hub', majority);
    await this.#queueOf(this.isQuiet ? 3 : 2);
    if (!this.isQuiet) await this.#watchPlace();
  }

  /** A has sent nothing but pings for half its timeout, and the next one (at two thirds) is not far. */
  async quietSpell(): Promise<void> {
    if (this.isQuiet) await sleep((0.52 + 0.13 * Math.random()) * this.plan.timeoutMs);
  }

  /** The predecessor goes. Resolves when A's first check after that was answered. */
  async predecessorGoes(): Promise<void> {
    const predecessor = this.#get('predecessor');
    const check = this.a.next('check', ({ ok }) => ok);
    if (this.plan.scenario === 'quiet, killed') void predecessor.kill();
    else predecessor.command('stop');
    await check;
  }

  /** An operator's deletion by hand at this moment, if the scenario has one. */
  async operate(moment: 'deleted before' | 'deleted after'): Promise<void> {
    if (this.plan.scenario !== moment) return;
    const place = this.a.find('leading')?.place;
    if (place === undefined) throw new Error(`${this.#name}: A has no place to delete`);
    try {
      await this.#around.operator.delete(place);
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      this.#notPlayed = 'the place of A was gone before the operator deleted it';
    }
  }

  /** Resolves when B leads, and A does not say any more that it does. */
  async settled(): Promise<void> {
    await this.b.first('leading');
    const isOver = (): boolean => this.a.all('over').length === this.a.all('leading').length;
    if (await until(patienceMs, isOver)) return;
    throw new Error(`${this.#name}: A still leads ${patienceMs / 1000} s after B`);
  }

  /** The outcome of the election; ends its processes. */
  async outcome(faultMs: number): Promise<Outcome> {
    const { plan } = this;
    const said: Said[] = [];
    let longestGapMs = 0;
    // A killed candidate says nothing any more.
    const asked = this.candidates.filter(({ hasEnded }) => !hasEnded);
    for (const candidate of asked) {
      const report = await candidate.report();
      said.push({ candidate: candidate.id, spells: report.spells });
      longestGapMs = Math.max(longestGapMs, report.longestGapMs);
    }
    await this.end();
    const spellsOf = ({ id }: CandidateProcess): readonly Spell[] =>
      said.find(({ candidate }) => candidate === id)?.spells ?? [];
    const first = spellsOf(this.b)[0];
    const last = spellsOf(this.a)[0];
    if (first === undefined) throw new Error(`${this.#name}: B has led and forgotten it`);
    const untilMs = last?.untilMs;
    return {
      plan,
      overlapMs: overlapMs(said, monotonicMs()),
      takeoverMs: first.fromMs - faultMs,
      boundMs: plan.timeoutMs * (1 + beliefPart) + 2 * this.#around.tickMs,
      apartMs: untilMs === undefined ? undefined : first.fromMs - untilMs,
      notPlayed: this.#notPlayed,
      tokensRise: plan.who !== 'ours' || tokensRise(said),
      longestGapMs,
    };
  }

  async end(): Promise<void> {
    await Promise.all(this.candidates.map((candidate) => candidate.kill()));
  }

  #get(id: string): CandidateProcess {
    const found = this.candidates.find((candidate) => candidate.id === id);
    if (found === undefined) throw new Error(`${this.#name}: ${id} has not been started`);
    return found;
  }

  #start(id: string, where: 'a' | 'hub', hosts: string): CandidateProcess {
    const { who, timeoutMs } = this.plan;
    const { network, broken } = this.#around;
    const isKazoo =
      who === 'kazoo' || who === (id === 'B' ? 'ours before kazoo' : 'kazoo before ours');
    const plan: CandidatePlan = {
      id,
      hosts,
      timeoutMs,
      // With kazoo's layout elections are below the root.
      election: isKazoo ? this.#path : who === 'ours' ? this.#name : this.#path.slice(1),
      ...(who !== 'ours' && { layout: 'kazoo' }),
      ...(broken && { broken }),
    };
    const under = where === 'a' ? network.behindOneServer : [];
    const candidate = new CandidateProcess(isKazoo ? 'kazoo' : 'ours', under, plan);
    this.candidates.push(candidate);
    return candidate;
  }

  get #path(): string {
    return this.plan.who === 'ours' ? `/incumbent/${this.#name}` : `/kazoo-${this.#name}`;
  }

  async #queue(): Promise<readonly string[]> {
    try {
      const { children } = await this.#around.operator.getChildren(this.#path);
      return children;
    } catch (error) {
      if (error instanceof NoNodeError) return [];
      throw error;
    }
  }

  async #queueOf(length: number): Promise<void> {
    const isSo = async (): Promise<boolean> => {
      const failed = this.candidates.map((candidate) => candidate.find('failed')?.message);
      if (failed.some((message) => message !== undefined)) throw new Error(failed.join(' '));
      return (await this.#queue()).length === length;
    };
    if (await until(patienceMs, isSo)) return;
    throw new Error(`${this.#name}: not ${length} in the queue after ${patienceMs / 1000} s`);
  }

  /** A's is the lowest number: only B came behind it. */
  async #watchPlace(): Promise<void> {
    const numberOf = (name: string): number => Number(name.slice(-10));
    const [first] = [...(await this.#queue())].sort((a, b) => numberOf(a) - numberOf(b));
    const watch = await this.#around.operator.watch(`${this.#path}/${first}`);
    void watch.changed.then(() => {
      this.#placeGoneMs = monotonicMs();
    });
  }
}
