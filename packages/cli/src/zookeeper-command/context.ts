import type { Environment, Output, Host as TerminalHost } from '../terminal/host.ts';

export type { Environment, Output, SignalName } from '../terminal/host.ts';

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

/** The surroundings of `main`: the process, or a test. */
export interface Host extends World, TerminalHost {
  /** @returns a function that removes the listener */
  onOutputError(
    listener: (error: Error & { readonly code?: string | undefined }) => void,
  ): () => void;
}
