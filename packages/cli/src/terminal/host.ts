/** The world, as all of our commands see it. Tests replace it. */

export interface Output {
  /** @param done called when it is written, or never will be */
  write(data: string | Uint8Array, done?: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** A command line runs in it: the process, or a test. */
export interface Host {
  readonly env: Environment;
  /** For what was asked for. */
  readonly stdout: Output;
  /** For people: notes and errors. */
  readonly stderr: Output;
  /** @returns a function that removes the listener */
  onSignal(name: SignalName, listener: () => void): () => void;
  exit(code: number): void;
}
