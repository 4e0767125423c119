/**
 * Questions to the process of a candidate and its answers. They are lines of JSON on its stdin and
 * stdout, so that a candidate need not be written in JavaScript. Instants are monotonic ms, whose
 * origin all processes of a machine share.
 */
export const candidateNames = ['ours', 'NZC', 'native', 'kazoo', 'raw', 'raw+decode'] as const;
export type CandidateName = (typeof candidateNames)[number];

export interface ConnectParams {
  readonly port: number;
  readonly sessionTimeoutMs: number;
  /** Adds a digest identity. */
  readonly auth: boolean;
}

export interface Rate {
  readonly perS: number;
  /** CPU time of the whole process, all its threads, for one operation. */
  readonly cpuUs: number;
}

/** Each method with what it takes and gives. */
export interface ClientMethods {
  /** Time that loading the client took. Answered once the process is up. */
  readonly hello: { readonly params: object; readonly result: { readonly importMs: number } };
  /** Opens the connection that the other methods use. */
  readonly connect: { readonly params: ConnectParams; readonly result: null };
  /** Reads one node again and again, `window` calls at a time. */
  readonly gets: {
    readonly params: {
      readonly path: string;
      readonly window: number;
      readonly warmUpMs: number;
      readonly measureMs: number;
    };
    /** `p50Ms` of one call, with a window of 1. */
    readonly result: Rate & { readonly p50Ms: number | null };
  };
  readonly creates: {
    readonly params: {
      readonly parent: string;
      readonly window: number;
      readonly warmUp: number;
      readonly operations: number;
    };
    readonly result: Rate;
  };
  /** From the call of `set` on a second connection until the watch of the first is told. */
  readonly watchDelivery: {
    readonly params: { readonly port: number; readonly path: string; readonly times: number };
    readonly result: { readonly p50Ms: number };
  };
  /** From nothing until a first get is answered; each with a new session. */
  readonly connectToReady: {
    readonly params: { readonly port: number; readonly path: string; readonly times: number };
    readonly result: { readonly p50Ms: number };
  };
  /** Sets a one-shot data watch on each of the nodes `numberedPath(parent, 0…count)`. */
  readonly watchAll: {
    readonly params: { readonly parent: string; readonly count: number };
    readonly result: null;
  };
  /** Reads one node every few ms from now on, whatever happens. */
  readonly probe: { readonly params: { readonly path: string }; readonly result: null };
  /** When the first of those reads succeeded after that instant. */
  readonly successAfter: {
    readonly params: { readonly ms: number };
    readonly result: { readonly atMs: number };
  };
  /** CPU time so far. */
  readonly cpu: { readonly params: object; readonly result: { readonly us: number } };
  /** Reads all those nodes, with or without a watch, and collects garbage. */
  readonly readAll: {
    readonly params: { readonly parent: string; readonly count: number; readonly watch: boolean };
    readonly result: { readonly rssBytes: number };
  };
  readonly rss: { readonly params: object; readonly result: { readonly bytes: number } };
}

export interface ResponderMethods {
  readonly hello: { readonly params: object; readonly result: { readonly port: number } };
  readonly cpu: { readonly params: object; readonly result: { readonly us: number } };
}

/** 100 bytes: what every node holds. */
export const nodeBytes = 100;

export function numberedPath(parent: string, index: number): string {
  return `${parent}/${String(index).padStart(10, '0')}`;
}
