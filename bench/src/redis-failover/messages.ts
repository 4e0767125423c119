/**
 * Questions to the processes and their answers, in lines of JSON on their stdin and stdout.
 * Instants are monotonic ms, whose origin all processes of a machine share.
 */

/** A message of a manager, or a step of a move: `at before revoke`, `at after promote`, … */
export interface Told {
  readonly what: string;
  readonly node: string | null;
  readonly atMs: number;
}

export interface ManagerMethods {
  /** Runs from then on. */
  readonly open: {
    readonly params: {
      readonly id: string;
      readonly zookeeper: string;
      readonly root: string;
      readonly nodes: readonly string[];
    };
    readonly result: null;
  };
  /** Since the last time. */
  readonly told: { readonly params: object; readonly result: { readonly told: readonly Told[] } };
}

/** How a writer finds the primary. */
export type Route =
  | { readonly by: 'incumbent'; readonly zookeeper: string; readonly root: string }
  | { readonly by: 'sentinel'; readonly port: number }
  /** There alone, whatever it is. */
  | { readonly by: 'address'; readonly port: number };

export interface WriterMethods {
  readonly open: { readonly params: { readonly route: Route }; readonly result: null };
  /** Writes one value after the other from then on; answered when the first is acknowledged. */
  readonly start: { readonly params: object; readonly result: null };
  /** Answered with the first write that another node executed and that was acknowledged. */
  readonly writesElsewhere: {
    readonly params: { readonly than: number };
    readonly result: { readonly atMs: number; readonly port: number };
  };
  /** The newest that was acknowledged. */
  readonly newest: {
    readonly params: object;
    readonly result: { readonly atMs: number; readonly port: number };
  };
  /** The longest time without an acknowledgement between the two. */
  readonly longestPause: {
    readonly params: { readonly fromMs: number; readonly toMs: number };
    readonly result: { readonly ms: number };
  };
  /** Asks for this primary; answered when it is one. By `incumbent` only. */
  readonly failover: {
    readonly params: { readonly port: number };
    readonly result: { readonly askedMs: number; readonly answeredMs: number };
  };
  /** Stops writing. */
  readonly stop: {
    readonly params: object;
    readonly result: {
      /** Values that were acknowledged. */
      readonly acknowledged: readonly number[];
      readonly unknown: number;
      readonly refused: number;
    };
  };
}
