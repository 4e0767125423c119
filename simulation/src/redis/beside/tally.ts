import type { RedisNode } from '../node.ts';
import type { Server } from '../server.ts';
import type { Step } from './steps.ts';

/** Where nodes were at rest after a step. */
const states: Readonly<Record<string, (server: Server) => boolean>> = {
  'a primary with replicas': ({ upstream, downstream }) =>
    upstream === undefined && downstream.attached.length > 0,
  'a linked replica': ({ upstream }) => upstream?.isConnected === true,
  'a linked replica with replicas': ({ upstream, downstream }) =>
    upstream?.isConnected === true && downstream.attached.length > 0,
  'a replica without its primary': ({ upstream }) => upstream?.isConnected === false,
  'a replica that waits for its copy': ({ upstream }) => upstream?.state === 'transfer',
  'a replica that a pause holds up': ({ upstream }) => upstream?.isHeldUp === true,
  'a node with two ids': ({ history }) => history.secondOffset >= 0,
  'a server whose writes are paused': ({ pausesWrites }) => pausesWrites,
  'a file that waits for its rewrite': ({ aof }) => aof.waits,
};

/** Counts of what a run has shown: a run that shows little proves little. */
export class Tally {
  readonly #counts = new Map<string, number>();

  get lines(): readonly string[] {
    const entries = [...this.#counts].sort(([x], [y]) => (x < y ? -1 : 1));
    return entries.map(([what, count]) => `${String(count).padStart(7)}  ${what}`);
  }

  played(step: Step): void {
    this.#count(nameOf(step), 1);
  }

  seen(nodes: readonly RedisNode[]): void {
    for (const { server, isPaused } of nodes) {
      if (server === undefined) this.#count('seen: a node that is down', 1);
      else if (isPaused) this.#count('seen: a node that stands still', 1);
      else this.#look(server);
    }
  }

  add({ counts }: { readonly counts: ReadonlyMap<string, number> }): void {
    for (const [what, count] of counts) this.#count(what, count);
  }

  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  #look(server: Server): void {
    for (const [what, holds] of Object.entries(states)) {
      if (holds(server)) this.#count(`seen: ${what}`, 1);
    }
    const { full, partly, notPartly } = this.#servedSince(server);
    this.#count('whole copies', full);
    this.#count('  of them for one that asked for a part', notPartly);
    this.#count('parts of a history', partly);
  }

  readonly #served = new WeakMap<Server, Server['downstream']['served']>();

  #servedSince(server: Server): Server['downstream']['served'] {
    const before = this.#served.get(server) ?? { full: 0, partly: 0, notPartly: 0 };
    const { full, partly, notPartly } = server.downstream.served;
    this.#served.set(server, { full, partly, notPartly });
    return {
      full: full - before.full,
      partly: partly - before.partly,
      notPartly: notPartly - before.notPartly,
    };
  }

  #count(what: string, count: number): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + count);
  }
}

function nameOf(step: Step): string {
  if (step.type === 'link') return `link: ${step.how}`;
  if (step.type === 'command' || step.type === 'block') {
    const [first, second = '', third = ''] = step.parts;
    const subcommand = first === 'CONFIG' || first === 'CLIENT' ? ` ${second}` : '';
    const setting = second === 'SET' && first === 'CONFIG' ? ` ${third}` : '';
    const toWhom = first === 'REPLICAOF' ? (second === 'NO' ? ' NO ONE' : ' another') : '';
    return `${first}${subcommand}${setting}${toWhom}`;
  }
  return step.type;
}
