/** The faults between a client and an API server. */
export interface ServedRequest {
  /** `get`, `create`, `update`, `patch`, `delete`, `list`, `watch`, or `other`. */
  readonly verb: string;
  readonly name: string | undefined;
  readonly user: string | undefined;
}

export type FaultAction =
  /** Nothing is done, and the connection is reset. */
  | { readonly kind: 'reset' }
  /** It is done, and the connection is reset before the answer. */
  | { readonly kind: 'drop-reply' }
  /** Nothing is done, and nothing is answered. */
  | { readonly kind: 'hang' }
  /** It is done and answered once `until` has resolved, also if the client has gone meanwhile. */
  | { readonly kind: 'hold'; readonly until: Promise<unknown> }
  /** Nothing is done; this is the answer. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    };

export interface Fault {
  /** Default: every request. */
  readonly verbs?: readonly string[];
  readonly name?: string;
  /** How many requests it hits, default 1. */
  readonly times?: number;
  readonly action: FaultAction;
}

export class Faults {
  readonly #pending: { readonly fault: Fault; left: number }[] = [];

  /** @returns ends it */
  add(fault: Fault): () => void {
    const pending = { fault, left: fault.times ?? 1 };
    this.#pending.push(pending);
    return () => {
      pending.left = 0;
    };
  }

  /** The first one that hits this request; counts it. */
  take({ verb, name }: ServedRequest): FaultAction | undefined {
    const hit = this.#pending.find(
      ({ fault, left }) =>
        left > 0 &&
        (fault.verbs === undefined || fault.verbs.includes(verb)) &&
        (fault.name === undefined || fault.name === name),
    );
    if (hit === undefined) return undefined;
    hit.left -= 1;
    return hit.fault.action;
  }
}
