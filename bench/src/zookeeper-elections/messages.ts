/**
 * Questions to the process of a candidate and its answers, in lines of JSON on its stdin and
 * stdout. Instants are monotonic ms, whose origin all processes of a machine share.
 */
export const peerNames = [
  'ours',
  'ours, predecessorWait off',
  'bare socket with a check',
  'bare socket',
  'kazoo',
  'node-zookeeper-client',
  'zookeeper (C client)',
  'Curator',
] as const;
export type PeerName = (typeof peerNames)[number];

/** One candidate with one connection. It stands in one election at a time. */
export interface CandidateMethods {
  readonly open: {
    readonly params: { readonly port: number; readonly sessionTimeoutMs: number };
    readonly result: null;
  };
  /** Answered when its work runs, and `atMs` is when that began. */
  readonly campaign: {
    readonly params: { readonly election: string };
    /** `token`: null where there is none. */
    readonly result: { readonly atMs: number; readonly token: string | null };
  };
  /** Answered when its place is gone; `atMs` is when it began to give it up. */
  readonly resign: { readonly params: object; readonly result: { readonly atMs: number } };
}

/** Many elections on one connection. */
export interface ManyMethods {
  readonly open: CandidateMethods['open'];
  /** Campaigns in the elections `<prefix>-0…`, and is answered when it leads them all. */
  readonly lead: {
    readonly params: { readonly prefix: string; readonly count: number };
    readonly result: null;
  };
  /** Joins the same elections behind another one; answered when it waits in them all. */
  readonly join: {
    readonly params: { readonly prefix: string; readonly count: number };
    readonly result: null;
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
  /** How many of its terms still lead. */
  readonly leading: { readonly params: object; readonly result: { readonly count: number } };
}
