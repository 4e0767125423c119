import type { ZooKeeper } from '@incumbent/zookeeper';
import { monotonicMs } from '../harness/time.ts';
import type { Arena } from './arena.ts';
import { Auditor } from './auditor.ts';
import { timing } from './bound.ts';
import type { Broken } from './broken.ts';
import { brokenForms } from './broken.ts';
import { Client } from './clients.ts';
import { RecordJudge, RoleJudge, TermJudge } from './judge.ts';
import type { Damage } from './losses.ts';
import { LossJudge, mayLose } from './losses.ts';
import { Managers } from './managers.ts';
import type { ManagerPlan } from './messages.ts';
import { startNodes } from './nodes.ts';
import type { Round } from './plan.ts';
import { RoleWatch } from './role-watch.ts';
import type { Servers } from './servers.ts';
import { heal, settle } from './settle.ts';
import type { Struck } from './strike.ts';
import { strikeAll } from './strike.ts';
import { Wires } from './wires.ts';

const managersOfASet = 3;
const strategies = ['majority', 'consensus', 'single'] as const satisfies readonly [
  ManagerPlan['strategy'],
  ...ManagerPlan['strategy'][],
];

export interface SetSettings {
  readonly servers: Servers;
  /** Past all proxies. */
  readonly zk: ZooKeeper;
  readonly directory: string;
  readonly broken: Broken | undefined;
  readonly note: (line: string) => void;
  /** How long a set may take to be well again, by when that began. */
  readonly boundMs: (fromMs: number) => number;
}

/** The outcome of a round for a set. */
export interface RoundOutcome {
  readonly problems: readonly string[];
  /** The longest time in which nobody's write was executed that was acknowledged. */
  readonly gapMs: number;
  /** Acknowledged writes that are gone, where Redis may lose them. */
  readonly lost: number;
  /** It is not well again: there is no point in going on. */
  readonly isStuck: boolean;
}

export interface Totals {
  readonly writes: number;
  readonly terms: number;
  readonly notAcknowledged: { readonly refused: number; readonly unknown: number };
}

/** One primary and two replicas, with managers and clients of their own. */
export class FailoverSet {
  readonly about: string;
  readonly #settings: SetSettings;
  readonly #arena: Arena;
  readonly hasMinReplicas: boolean;
  readonly #watches: readonly RoleWatch[];
  readonly #judges: Judges;
  readonly #problems: string[];
  #refused = 0;
  #unknown = 0;
  /** When the writes of this round were executed, in µs. */
  #executedUs: number[] = [];
  #lastUs: number | undefined;

  private constructor(
    index: number,
    settings: SetSettings,
    { arena, judges, watches, problems }: Parts,
  ) {
    this.#settings = settings;
    this.#arena = arena;
    this.#judges = judges;
    this.#watches = watches;
    this.#problems = problems;
    this.hasMinReplicas = hasMinReplicas(index);
    this.about =
      `set ${index + 1}: ${this.hasMinReplicas ? 'min-replicas-to-write 1' : 'no min-replicas'}, ` +
      `strategy ${strategyOf(index)}`;
  }

  /** @param index from 0 */
  static async start(index: number, settings: SetSettings): Promise<FailoverSet> {
    const { servers, zk, directory, broken } = settings;
    const prefix = `s${index + 1}`;
    const root = `/redis-${index + 1}`;
    const note = (line: string) => settings.note(`${prefix} ${line}`);
    const problems: string[] = [];
    const blame = (problem: string): void => {
      problems.push(problem);
      note(`FAILED ${problem}`);
    };
    const nodes = await startNodes(hasMinReplicas(index));
    note(`nodes ${nodes.map(({ address }) => address).join(', ')}`);
    const judges = {
      terms: new TermJudge(),
      records: new RecordJudge(),
      roles: new RoleJudge(),
      losses: new LossJudge(),
    };
    const watches = nodes.map(({ port, logPath }) => new RoleWatch(port, logPath));
    const auditor = new Auditor(zk, root, judges.records, note);
    const form = broken && brokenForms[broken];
    const layWires = (before: readonly { address: string; port: number }[]) =>
      Wires.lay(servers.ports, before);
    const managers = new Managers(
      await Promise.all(Array.from({ length: managersOfASet }, () => layWires(nodes))),
      prefix,
      {
        ...{ note, blame },
        plan: {
          ...{ root, timing },
          nodes: nodes.map(({ address }) => address),
          strategy: strategyOf(index),
          broken: form?.manager ?? [],
        },
      },
    );
    await managers.start();
    const libraries = ['redis', 'ioredis'] as const;
    const clients = await Promise.all(
      libraries.map(async (library, number) => {
        const name = `${prefix}c${number + 1}`;
        const clientBroken = form?.client ?? [];
        return Client.start(name, await layWires([]), {
          ...{ directory, root, library, broken: clientBroken, note, blame },
        });
      }),
    );
    const arena: Arena = {
      ...{ nodes, managers, clients, servers, auditor, root, note },
      records: judges.records,
    };
    return new FailoverSet(index, settings, { arena, judges, watches, problems });
  }

  get totals(): Totals {
    return {
      writes: this.#judges.losses.acknowledged,
      terms: this.#judges.terms.terms.length,
      notAcknowledged: { refused: this.#refused, unknown: this.#unknown },
    };
  }

  /** Resolves when all of it is over and judged. */
  async play(round: Round): Promise<RoundOutcome> {
    const { managers, records } = this.#arena;
    managers.takenForDown();
    const { term = 0 } = records.last ?? {};
    const struck = await strikeAll(this.#arena, round);
    return this.#judge(term, struck);
  }

  /** With nothing struck: that it is well. */
  settled(): Promise<RoundOutcome> {
    return this.#judge(0, { nodes: new Set(), primary: false, cameBackEmpty: false });
  }

  /** Ends everybody. @returns what was left behind */
  async end(): Promise<readonly string[]> {
    const { clients, managers, auditor } = this.#arena;
    const left = [
      ...(await Promise.all(clients.map((client) => client.end()))).flat(),
      ...(await managers.end()),
      ...this.#problems.splice(0),
    ];
    await auditor.close();
    return left;
  }

  /** Of what does not end by itself with this process. */
  async close(): Promise<void> {
    for (const watch of this.#watches) watch.close();
    await Promise.all(this.#arena.nodes.map((node) => node.close()));
  }

  /** @param fromTerm of the record before anything was struck */
  async #judge(fromTerm: number, struck: Struck): Promise<RoundOutcome> {
    const arena = this.#arena;
    const { terms, records, roles } = this.#judges;
    await heal(arena);
    arena.note('healed');
    const fromMs = monotonicMs();
    const reading = setInterval(() => this.#read(), 100);
    const wrong = await settle(arena, fromMs, this.#settings.boundMs);
    clearInterval(reading);
    this.#read();
    const isStuck = wrong.length > 0;
    const { problems, lost } = isStuck
      ? { problems: [], lost: 0 }
      : await this.#compare(this.#damage(fromTerm, struck));
    const found = [
      ...this.#problems.splice(0),
      ...wrong,
      ...problems,
      ...terms.findings((term) => records.primaryOf(term)),
      ...records.findings(),
      ...roles.findings(),
    ];
    for (const problem of found) arena.note(`FAILED ${problem}`);
    return { problems: found, gapMs: this.#longestGapMs(), lost, isStuck };
  }

  /** Whom the managers took for unavailable was struck, if only by a machine that stood still. */
  #damage(fromTerm: number, { nodes, primary, cameBackEmpty }: Struck): Damage {
    const { managers, records } = this.#arena;
    const hit = new Set([...[...nodes].map(({ address }) => address), ...managers.takenForDown()]);
    return {
      hasMinReplicas: this.hasMinReplicas,
      primary: primary || records.namedSince(fromTerm).some((address) => hit.has(address)),
      nodes: hit.size,
      ofNodes: this.#arena.nodes.length,
      cameBackEmpty,
    };
  }

  #read(): void {
    for (const watch of this.#watches) {
      for (const change of watch.read()) {
        const { port, command, manager, token } = change;
        this.#arena.note(`${port} has executed ${command} of ${manager} (token ${token})`);
        this.#judges.roles.add(change);
      }
    }
    for (const client of this.#arena.clients) {
      for (const line of client.read()) {
        this.#judges.terms.add(line);
        this.#judges.losses.add(line);
        if (line.outcome.kind === 'acknowledged') this.#executedUs.push(line.outcome.atUs);
        if (line.outcome.kind === 'refused') this.#refused += 1;
        if (line.outcome.kind === 'unknown') this.#unknown += 1;
      }
    }
  }

  /** The acknowledged writes so far are there. */
  async #compare(damage: Damage): Promise<{ problems: readonly string[]; lost: number }> {
    const { clients, note } = this.#arena;
    const problems: string[] = [];
    let lost = 0;
    for (const { name } of clients) {
      const compared = this.#judges.losses.compare(name, await this.#kept(name));
      const { lost: gone, doneAfterAll } = compared;
      if (gone.length > 0) {
        note(`lost ${gone.length} acknowledged writes of ${name}: ${gone.slice(0, 20).join(' ')}`);
      }
      if (gone.length > 0 && !mayLose(damage)) {
        problems.push(
          `no acknowledged write is lost: ${gone.length} of ${name}, the first is ${gone[0]}`,
        );
      } else lost += gone.length;
      if (doneAfterAll.length > 0) {
        problems.push(
          `refused is not done: ${doneAfterAll.length} writes of ${name} are there, the first is ` +
            `${doneAfterAll[0]}`,
        );
      }
    }
    return { problems, lost };
  }

  async #kept(client: string): Promise<Uint8Array> {
    const script =
      "local bits = redis.call('GET', KEYS[1]) or '' " +
      "return (bits:gsub('.', function(c) return string.format('%02x', c:byte()) end))";
    const { records, nodes } = this.#arena;
    const primary = nodes.find(({ address }) => address === records.lastPrimary);
    const text = await primary?.command('EVAL', script, 1, `writes:${client}`);
    return Buffer.from(String(text), 'hex');
  }

  #longestGapMs(): number {
    const executed = this.#executedUs.sort((a, b) => a - b);
    this.#executedUs = [];
    let longestUs = 0;
    for (const atUs of executed) {
      longestUs = Math.max(longestUs, atUs - (this.#lastUs ?? atUs));
      this.#lastUs = Math.max(atUs, this.#lastUs ?? atUs);
    }
    return longestUs / 1e3;
  }
}

interface Judges {
  readonly terms: TermJudge;
  readonly records: RecordJudge;
  readonly roles: RoleJudge;
  readonly losses: LossJudge;
}

interface Parts {
  readonly arena: Arena;
  readonly judges: Judges;
  readonly watches: readonly RoleWatch[];
  /** Problems that processes reported and that nobody has told yet. */
  readonly problems: string[];
}

function hasMinReplicas(index: number): boolean {
  return index % 2 === 0;
}

function strategyOf(index: number): ManagerPlan['strategy'] {
  return strategies[index % strategies.length] ?? strategies[0];
}
