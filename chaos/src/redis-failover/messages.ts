/**
 * The orders and messages of the processes of managers and clients. Instants are ms of the
 * machine's monotonic clock, which all processes share, unless their names say otherwise.
 */
import type { ClientBroken, ManagerBroken } from './broken.ts';
import type { ManagerStep } from './plan.ts';

/** How everybody is timed, in ms. */
export interface Timing {
  /** Of a manager's session with ZooKeeper. */
  readonly sessionMs: number;
  readonly tickMs: number;
  readonly checkEveryMs: number;
  readonly nodeTimeoutMs: number;
  readonly maxFailures: number;
  /** `clientView`. */
  readonly viewMs: number;
}

export interface ManagerPlan {
  readonly id: string;
  /** `host:port` of every Redis, as clients know it. */
  readonly nodes: readonly string[];
  /** Where this manager reaches each of them: proxies of its own. */
  readonly reach: Readonly<Record<string, string>>;
  /** Through proxies of its own. */
  readonly zookeeper: string;
  readonly root: string;
  readonly strategy: 'majority' | 'consensus' | 'single';
  readonly timing: Timing;
  readonly broken: readonly ManagerBroken[];
}

export type ManagerTells =
  | { readonly say: 'started' }
  | { readonly say: 'elected'; readonly token: string }
  | { readonly say: 'ousted'; readonly token: string }
  | { readonly say: 'moved'; readonly to: string; readonly term: number }
  /** The common judgement of all managers on a node. */
  | { readonly say: 'judged'; readonly node: string; readonly isUp: boolean }
  /** It waits there until it is told to go on. */
  | { readonly say: 'at'; readonly key: string }
  | { readonly say: 'note'; readonly text: string }
  /** Something that must not be. */
  | { readonly say: 'trouble'; readonly text: string }
  | { readonly say: 'closed' };

export type ManagerOrder =
  /** `key`: by which it tells that it is there, and is told to go on. */
  | { readonly order: 'arm'; readonly key: string; readonly step: ManagerStep }
  /** A manager that has not reached the step does not wait there any more. */
  | { readonly order: 'go'; readonly key: string }
  | { readonly order: 'stop' };

export interface ClientPlan {
  readonly name: string;
  readonly library: 'redis' | 'ioredis';
  /** Through proxies of its own. */
  readonly zookeeper: string;
  readonly root: string;
  readonly sessionMs: number;
  /** How long a call waits for a primary. */
  readonly maxWaitMs: number;
  /** A line for each `WriteLine`. */
  readonly log: string;
  readonly broken: readonly ClientBroken[];
}

export type ClientTells =
  | { readonly say: 'writing' }
  | { readonly say: 'note'; readonly text: string }
  | { readonly say: 'requested'; readonly done: boolean; readonly text: string }
  | { readonly say: 'trouble'; readonly text: string }
  | { readonly say: 'closed' };

export type ClientOrder =
  /** An operator's failover; `node`: whom to promote. Answered with `requested`. */
  { readonly order: 'failover'; readonly node: string | undefined } | { readonly order: 'stop' };

/** One write, and what became of it. */
export interface WriteLine {
  readonly client: string;
  /** Each write of a client sets the bit of this number in a value of its own. From 0. */
  readonly number: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly outcome: Acknowledged | NotAcknowledged;
}

export interface Acknowledged {
  readonly kind: 'acknowledged';
  /**
   * The Redis that executed it, and when, as that Redis says itself: port, and microseconds since
   * 1970.
   */
  readonly port: number;
  readonly atUs: number;
  /** As the client knew it when it asked, and when it had the answer. */
  readonly fromTerm: number;
  readonly toTerm: number;
  /** The bit had been set already: what was asked for once was done twice. */
  readonly again: boolean;
}

/** `refused`: surely not done. `unknown`: nobody knows. */
export interface NotAcknowledged {
  readonly kind: 'refused' | 'unknown';
  readonly why: string;
}
