/**
 * The orders and messages of the processes of a service and of its clients. Instants are ms of the
 * machine's monotonic clock, which all processes share.
 */
import type { Broken } from './broken.ts';
import type { Resources } from './resources.ts';

export const transports = ['grpc', 'http'] as const;
export type Transport = (typeof transports)[number];

/** Known to every process in the election. */
export interface Ground {
  readonly election: string;
  /** Of the file store. */
  readonly directory: string;
  readonly leaseMs: number;
  readonly stopTimeoutMs: number;
  readonly transports: readonly Transport[];
  readonly broken?: Broken;
}

export interface ServicePlan extends Ground {
  readonly id: string;
  /** A service that starts again has those of the one before it. */
  readonly grpcPort: number;
  readonly httpPort: number;
  /** The fenced log: a line for each call that was served. */
  readonly log: string;
  /** A line for each `TermLine`. */
  readonly terms: string;
}

/** When a process begins to lead, how long it believes so, and when it knows that it is over. */
export type TermLine =
  | { readonly token: string; readonly candidate: string; readonly beginsMs: number }
  | { readonly token: string; readonly candidate: string; readonly untilMs: number }
  | { readonly token: string; readonly candidate: string; readonly overMs: number };

/** `closed`: with everything closed that it opened. */
type TellsResources =
  | { readonly say: 'resources'; readonly resources: Resources }
  | { readonly say: 'closed'; readonly resources: Resources };

export type ServiceTells =
  /** It listens and campaigns. */
  | {
      readonly say: 'ready';
      readonly before: Resources;
      readonly resources: Resources;
    }
  | { readonly say: 'leading'; readonly token: string; readonly atMs: number }
  /** The last it says before it stops in its tracks. */
  | { readonly say: 'freezing' }
  | { readonly say: 'trouble'; readonly text: string }
  | TellsResources;

/** `resign`: gives its term up. `freeze`: stops itself, between two turns of its event loop. */
export type ServiceOrder = 'resign' | 'freeze' | 'resources' | 'close';

export interface ClientPlan extends Ground {
  readonly name: string;
  /** The HTTP servers of all services, as origins. */
  readonly entries: readonly string[];
  /** How long a call may take. */
  readonly callMs: number;
}

/** How a client calls, in one endless loop. */
export interface Way {
  readonly name: string;
  /**
   * Its possible connections: one for each service, or one for each term that began since gRPC last
   * looked for unused connections.
   */
  readonly connectsTo: 'services' | 'terms';
}

/** A call that failed. */
export interface Failure {
  readonly client: string;
  readonly way: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly why: string;
}

/** The calls that one way was served under one token. */
export interface Served {
  readonly client: string;
  readonly way: string;
  readonly token: string;
  readonly calls: number;
  /** When the first of these calls was answered. */
  readonly firstMs: number;
}

export type ClientTells =
  | { readonly say: 'calling'; readonly before: Resources; readonly ways: readonly Way[] }
  | { readonly say: 'failed'; readonly failure: Failure }
  | { readonly say: 'trouble'; readonly text: string }
  | { readonly say: 'served'; readonly served: readonly Served[] }
  | TellsResources;

/** `stop`: no more calls; answered with `served`. */
export type ClientOrder = 'resources' | 'stop' | 'close';
