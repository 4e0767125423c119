/**
 * Questions to the processes and their answers, in lines of JSON on their stdin and stdout.
 * Instants are monotonic ms, whose origin all processes of a machine share.
 */

export const transports = ['grpc', 'http'] as const;
export type Transport = (typeof transports)[number];

/**
 * - `following`: by the resolver, or by `toLeader`.
 * - `retrying`: the same with a retry policy as documented, gRPC only.
 * - `static`: to an address, at a method that is served by leader and follower alike.
 */
export type CallerName = 'following' | 'retrying' | 'static';

/** The answer of a service. */
export interface Served {
  /** Of the term that it leads; null where whether it leads does not matter. */
  readonly token: string | null;
  /** When the handler ran. */
  readonly servedMs: number;
}

export interface Ports {
  readonly grpc: number;
  readonly http: number;
}

/** A candidate that serves while it leads. */
export interface ServiceMethods {
  readonly open: {
    readonly params: {
      readonly id: string;
      readonly directory: string;
      readonly election: string;
      readonly leaseMs: number;
    };
    readonly result: Ports;
  };
  /** Answered when its work runs, and `atMs` is when that began. */
  readonly campaign: {
    readonly params: object;
    readonly result: { readonly atMs: number; readonly token: string };
  };
  /** Answered when the seat is given back; `atMs` is when it began to give it up. */
  readonly resign: { readonly params: object; readonly result: { readonly atMs: number } };
}

/** A process that follows the leader. */
export interface FollowerMethods {
  readonly open: {
    readonly params: {
      readonly directory: string;
      readonly election: string;
      readonly leaseMs: number;
    };
    readonly result: null;
  };
  /** Calls again and again, and is answered when a term above `token` has served one. */
  readonly follow: {
    readonly params: {
      readonly transport: Transport;
      readonly caller: CallerName;
      readonly above: string;
    };
    readonly result: {
      readonly token: string;
      readonly servedMs: number;
      /** When an observer beside it was told of that term. */
      readonly observedMs: number;
      /** When the leader's address was asked for first, after that term had begun. */
      readonly resolvedMs: number;
    };
  };
  /** So many calls, one after the other. */
  readonly calls: {
    readonly params: {
      readonly transport: Transport;
      readonly caller: CallerName;
      readonly ports: Ports;
      readonly times: number;
    };
    readonly result: { readonly ms: readonly number[] };
  };
  /** As many first calls, each on a connection of its own. */
  readonly connections: {
    readonly params: {
      readonly transport: Transport;
      readonly ports: Ports;
      readonly times: number;
    };
    readonly result: { readonly ms: readonly number[] };
  };
}

export const objectStores = ['s3', 'gcs'] as const;
export type ObjectStore = (typeof objectStores)[number];

/** A stand-in for an object store. */
export interface ObjectServerMethods {
  readonly open: {
    readonly params: { readonly store: ObjectStore };
    readonly result: { readonly url: string };
  };
  /** Requests since the last time, by the name that the client gave itself. */
  readonly requests: {
    readonly params: object;
    readonly result: { readonly counts: readonly RequestCount[] };
  };
}

export interface RequestCount {
  readonly who: string;
  readonly isWrite: boolean;
  readonly count: number;
}

/** A process with one client of an object store. */
export interface ObjectUserMethods {
  readonly open: {
    readonly params: {
      readonly store: ObjectStore;
      readonly url: string;
      /** How it is known to the server. */
      readonly who: string;
      /** null: the default of the store. */
      readonly leaseMs: number | null;
    };
    /** D. */
    readonly result: { readonly leaseMs: number };
  };
  /** Campaigns in the elections `<prefix>-0…`, and is answered when it leads them all. */
  readonly lead: {
    readonly params: { readonly prefix: string; readonly count: number };
    readonly result: null;
  };
  /** Observes the same ones, and is answered when it knows all leaders. */
  readonly observe: {
    readonly params: { readonly prefix: string; readonly count: number };
    readonly result: null;
  };
  /** Of the terms of `lead`. */
  readonly standing: {
    readonly params: object;
    readonly result: { readonly leading: number };
  };
  /** Looks at the first election, and reads its object by the bare client, in turn. */
  readonly looks: {
    readonly params: { readonly prefix: string; readonly times: number };
    readonly result: { readonly lookMs: readonly number[]; readonly getMs: readonly number[] };
  };
}
