/** All that the commands use of the outside world. Tests replace all of it. */
import type { Environment, Output, Host as TerminalHost } from '../terminal/host.ts';

export type { Environment, Output, SignalName } from '../terminal/host.ts';

/** The log of `manage`. Writing never waits for a reader. */
export interface LogSink {
  readonly isTerminal: boolean;
  /** A line, with its line break. */
  write(line: string): unknown;
  /** Resolves when everything is written, within bounds. */
  end(): Promise<void>;
}

interface World {
  readonly env: Environment;
  readonly cwd: string;
  /** For the requested output. */
  readonly stdout: Output;
  /** For people: notes and errors. */
  readonly stderr: Output;
  /** Opened by `manage` only, which then writes nothing else to stdout. */
  openLog(): Promise<LogSink>;
}

export interface Context extends World {
  /**
   * Aborted by INT and TERM, and by HUP unless the command ignores it, with an `InterruptedError`
   * to throw. The second time the process ends at once.
   */
  readonly signal: AbortSignal;
  /** Called at each HUP, by commands that do not end at it. */
  onHangUp(listener: () => void): void;
}

/** The surroundings of `main`: the process, or a test. */
export interface Host extends World, TerminalHost {}
