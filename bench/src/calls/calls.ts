/** Calls between the bench and the processes that it measures: lines of JSON on stdin and stdout. */
export type Methods<M> = {
  readonly [K in keyof M]: { readonly params: object; readonly result: unknown };
};

/** A question to a process, and its answer. */
export interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: object;
}
export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string };
