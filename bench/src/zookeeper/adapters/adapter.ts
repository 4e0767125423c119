/** A client as the benchmarks use it, each by the calls that its own users would write. */
export interface Adapter {
  /** Resolves when it is connected. */
  connect(options: ConnectOptions): Promise<Connection>;
  /** A new client that has read the node, the shortest way there is. */
  connectAndGet(options: ConnectOptions, path: string): Promise<Connection>;
}

export interface ConnectOptions {
  readonly port: number;
  readonly sessionTimeoutMs: number;
  /** Adds a digest identity. */
  readonly auth: boolean;
}

export interface Connection {
  get(path: string): Promise<void>;
  /**
   * Reads the node `operations` times with `window` calls in flight, in a loop as natural as the
   * client allows.
   */
  gets(path: string, operations: number, window: number, completed?: () => void): Promise<void>;
  /** Creates the persistent nodes `numberedPath(parent, from…from + operations)`. */
  creates(parent: string, from: number, operations: number, window: number): Promise<void>;
  /** Reads the node and sets a one-shot watch on its data. */
  watch(path: string, changed: () => void): Promise<void>;
  set(path: string): Promise<void>;
  close(): Promise<void>;
}

/** The data of each node. */
export function nodeData(bytes: number): Buffer {
  return Buffer.alloc(bytes, 'z');
}

export const credentials: { readonly scheme: string; readonly auth: string } = {
  scheme: 'digest',
  auth: 'bench:secret',
};

/** The loop for a client with callbacks: each answer starts the next call. */
export function callbackLoop(
  operations: number,
  window: number,
  start: (index: number, done: (error: unknown) => void) => void,
  completed?: () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let started = 0;
    let answered = 0;
    const next = () => {
      if (started === operations) return;
      started += 1;
      start(started - 1, done);
    };
    const done = (error: unknown) => {
      if (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      answered += 1;
      completed?.();
      if (answered === operations) resolve();
      else next();
    };
    for (let i = 0; i < window; i += 1) next();
  });
}

/** The loop for a client with promises: so many functions that await one call after the other. */
export async function promiseLoop(
  operations: number,
  window: number,
  call: (index: number) => Promise<unknown>,
  completed?: () => void,
): Promise<void> {
  let started = 0;
  const lane = async () => {
    while (started < operations) {
      started += 1;
      await call(started - 1);
      completed?.();
    }
  };
  await Promise.all(Array.from({ length: Math.min(window, operations) }, lane));
}
