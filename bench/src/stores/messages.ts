/**
 * Questions to the process of a candidate and its answers, in lines of JSON on its stdin and
 * stdout. Instants are monotonic ms, whose origin all processes of a machine share.
 */
export type StoreName = 'file' | 'postgres' | 'redis' | 'etcd' | 'kubernetes';

/** A contender of the benchmarks. */
export interface ContenderInfo {
  readonly store: StoreName;
  readonly isOurs: boolean;
  /** The store wakes those who wait. */
  readonly isWoken: boolean;
}

export type ContenderName =
  | 'file'
  | 'postgres, pg'
  | 'postgres, postgres'
  | 'redis, redis'
  | 'redis, ioredis'
  | 'etcd'
  | 'kubernetes'
  | 'peer: etcd3 on etcd'
  | 'peer: redlock on redis';

export const contenders: Readonly<Record<ContenderName, ContenderInfo>> = {
  file: { store: 'file', isOurs: true, isWoken: true },
  'postgres, pg': { store: 'postgres', isOurs: true, isWoken: true },
  'postgres, postgres': { store: 'postgres', isOurs: true, isWoken: true },
  'redis, redis': { store: 'redis', isOurs: true, isWoken: true },
  'redis, ioredis': { store: 'redis', isOurs: true, isWoken: true },
  etcd: { store: 'etcd', isOurs: true, isWoken: true },
  kubernetes: { store: 'kubernetes', isOurs: true, isWoken: true },
  'peer: etcd3 on etcd': { store: 'etcd', isOurs: false, isWoken: true },
  'peer: redlock on redis': { store: 'redis', isOurs: false, isWoken: false },
};
export const contenderNames: readonly ContenderName[] = Object.keys(
  contenders,
) as readonly ContenderName[];

/** Where a store is: a port of this machine, or a directory. */
export interface Address {
  readonly port: number;
  readonly directory: string;
}

/** One candidate with one client. */
export interface CandidateMethods {
  readonly open: {
    readonly params: { readonly address: Address; readonly leaseMs: number };
    readonly result: null;
  };
  /** Reads and writes of one record by the bare client, one after the other. Empty where there is none. */
  readonly roundTrips: {
    readonly params: { readonly times: number };
    readonly result: { readonly readMs: readonly number[]; readonly writeMs: readonly number[] };
  };
  /**
   * The least that a hand-over takes: `wake` writes a record and notifies the listener, which reads
   * and writes. `listen` is answered when it listens (false: it cannot), `woken` when the last
   * write is done.
   */
  readonly listen: { readonly params: { readonly topic: string }; readonly result: boolean };
  readonly woken: { readonly params: object; readonly result: { readonly atMs: number } };
  readonly wake: {
    readonly params: { readonly topic: string };
    readonly result: { readonly atMs: number };
  };
  /** Answered when its work runs, and `atMs` is when that began. */
  readonly campaign: {
    readonly params: { readonly election: string };
    /** `token`: null where there is none. */
    readonly result: { readonly atMs: number; readonly token: string | null };
  };
  /** Answered when the seat is given back; `atMs` is when it began to give it up. */
  readonly resign: { readonly params: object; readonly result: { readonly atMs: number } };
  /** Campaigns in the elections `<prefix>-0…`, 25 ms apart, and is answered when it leads them all. */
  readonly lead: {
    readonly params: { readonly prefix: string; readonly count: number };
    readonly result: { readonly elapsedMs: number };
  };
  /** Enters the same elections behind another one, and is answered when it has entered them all. */
  readonly follow: {
    readonly params: { readonly prefix: string; readonly count: number };
    readonly result: null;
  };
  /** Of the terms of `lead`, and of the elections of `follow`. */
  readonly standing: {
    readonly params: object;
    readonly result: { readonly leading: number; readonly ended: number; readonly won: number };
  };
  /** After several collections. */
  readonly memory: {
    readonly params: object;
    readonly result: { readonly heapBytes: number; readonly rssBytes: number };
  };
  /** Of one core, with all threads of the process. */
  readonly cpuShare: {
    readonly params: { readonly windowMs: number };
    readonly result: { readonly share: number };
  };
}

/** The stand-in for the API server, in a process of its own. */
export interface ApiServerMethods {
  readonly open: { readonly params: object; readonly result: { readonly port: number } };
}
