export type Environment = Readonly<Record<string, string | undefined>>;

export interface Output {
  /** @param done called when it is written, or will never be */
  write(data: string | Uint8Array, done?: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

interface World {
  readonly env: Environment;
  /** Called by the commands that read it: it is not touched before. */
  stdin(): AsyncIterable<Uint8Array>;
  /** For the requested output. */
  readonly stdout: Output;
  /** For people: notes and errors. */
  readonly stderr: Output;
}

/** A command's access to the world. */
export interface Context extends World {
  /**
   * Aborted by INT, TERM, HUP, and when the reader of our output has gone. Its reason is the error
   * to throw.
   */
  readonly signal: AbortSignal;
  readonly json: boolean;
  /** Writes to stdout, and resolves when there is room for more. */
  print(data: string | Uint8Array): Promise<void>;
  /** Writes a line for people to stderr; with `--json` nothing. */
  note(text: string): void;
}

export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** The surroundings of `main`: the process, or a test. */
export interface Host extends World {
  /** @returns a function that removes the listener */
  onSignal(name: SignalName, listener: () => void): () => void;
  /** @returns a function that removes the listener */
  onOutputError(listener: (error: Error & { readonly code?: string }) => void): () => void;
  exit(code: number): void;
}
