import { commonExitCodes } from './failure.ts';
import type { Environment, Host, Output, SignalName } from './host.ts';

/** How long what is still going on may take to end by itself. */
const hangingMs = 500;

type OutputErrorListener = (error: NodeJS.ErrnoException) => void;

/** This process as the host of a command line. Everything here is loaded by every command: keep it small. */
export class ProcessHost implements Host {
  readonly env: Environment = process.env;
  readonly platform: NodeJS.Platform = process.platform;
  readonly stderr: Output = process.stderr;
  readonly #name: string;
  readonly #outputErrorListeners: Set<OutputErrorListener> = new Set();
  #stdout: NodeJS.WriteStream | undefined;

  /** @param name of the command, for errors */
  constructor(name: string) {
    this.#name = name;
    // Deprecated calls of drivers are our business, and not that of people who read stderr.
    if (!process.env['INCUMBENT_DEBUG']) process.noDeprecation = true;
    process.stderr.on('error', () => {});
  }

  /** Touched only by who writes there: Node sets its descriptor to non-blocking, and a log may have its own. */
  get stdout(): Output {
    if (this.#stdout === undefined) {
      this.#stdout = process.stdout;
      this.#stdout.on('error', (error: NodeJS.ErrnoException) => this.#onOutputError(error));
    }
    return this.#stdout;
  }

  get cwd(): string {
    return process.cwd();
  }

  onSignal(name: SignalName, listener: () => void): () => void {
    process.on(name, listener);
    return () => process.off(name, listener);
  }

  /** While there is a listener, an error of stdout does not end the process. */
  onOutputError(listener: OutputErrorListener): () => void {
    this.#outputErrorListeners.add(listener);
    return () => this.#outputErrorListeners.delete(listener);
  }

  exit(code: number): void {
    process.exit(code);
  }

  /** Ends the process with that code when everything is written. */
  end(code: number): void {
    process.exitCode = code;
    const afterStdout = () =>
      process.stderr.write('', () => {
        // The rest may hang, such as a dead disk, a dead server, or a stdin that nobody closes.
        setTimeout(() => process.exit(), hangingMs).unref();
      });
    if (this.#stdout === undefined) afterStdout();
    else this.#stdout.write('', afterStdout);
  }

  #onOutputError(error: NodeJS.ErrnoException): void {
    for (const listener of this.#outputErrorListeners) listener(error);
    if (this.#outputErrorListeners.size > 0) return;
    // The reader of our output is gone (`incumbent watch | head -1`): there is nobody left to tell.
    if (error.code === 'EPIPE') process.exit();
    process.stderr.write(`${this.#name}: the output cannot be written: ${error.message}\n`);
    process.exit(commonExitCodes.output);
  }
}
