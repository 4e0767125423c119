/** The part of the outside world that all of our commands use. Tests replace it. */

export interface Output {
  /** @param done is called when the data is written, or when it never will be */
  write(data: string | Uint8Array, done?: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** The surroundings of a command line: the process, or a test. */
export interface Host {
  readonly env: Environment;
  /** For the answer that the user asked for. */
  readonly stdout: Output;
  /** For people: notes and errors. */
  readonly stderr: Output;
  /** @returns a function that removes the listener */
  onSignal(name: SignalName, listener: () => void): () => void;
  exit(code: number): void;
}
