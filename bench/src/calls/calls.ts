/** Calls between the bench and the processes that it measures: lines of JSON on stdin and stdout. */
export type Methods<M> = {
  readonly [K in keyof M]: { readonly params: object; readonly result: unknown };
};

/** What is asked, and what comes back for it. */
export interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: object;
}
export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string };
