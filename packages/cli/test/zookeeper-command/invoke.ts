import type { Host, SignalName } from '../../src/zookeeper-command/context.ts';
import { main } from '../../src/zookeeper-command/main.ts';

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process. */
export async function invoke(
  argv: readonly string[],
  {
    env = {},
    stdin = [],
    terminal = false,
    onHost,
  }: {
    readonly env?: Readonly<Record<string, string>>;
    /** `open`: nothing comes, and no end. */
    readonly stdin?: readonly string[] | 'open';
    /** Whether stdout and stderr are terminals. */
    readonly terminal?: boolean;
    /** Called with functions that send signals and errors of the output. */
    readonly onHost?: (tell: {
      signal(name: SignalName): void;
      outputError(error: Error): void;
      /** Resolves when the command waits for stdin. */
      readonly reading: Promise<void>;
    }) => void;
  } = {},
): Promise<Result & { readonly exits: readonly number[]; readonly listeners: number }> {
  let stdout = '';
  let stderr = '';
  const exits: number[] = [];
  const listeners = new Map<string, (error: Error) => void>();
  const on = (name: string, listener: (error: Error) => void) => {
    listeners.set(name, listener);
    return () => listeners.delete(name);
  };
  let startReading = () => {};
  const reading = new Promise<void>((resolve) => {
    startReading = resolve;
  });
  const host: Host = {
    env,
    async *stdin() {
      startReading();
      if (stdin === 'open') await new Promise(() => {});
      for (const chunk of stdin) yield Buffer.from(chunk);
    },
    stdout: {
      isTTY: terminal,
      write(data, done) {
        stdout += typeof data === 'string' ? data : Buffer.from(data).toString();
        done?.();
      },
    },
    stderr: { isTTY: terminal, write: (data) => (stderr += String(data)) },
    onSignal: (name, listener) => on(name, listener),
    onOutputError: (listener) => on('output', listener),
    exit: (code) => exits.push(code),
  };
  const running = main(argv, host);
  onHost?.({
    signal: (name) => listeners.get(name)?.(new Error(name)),
    reading,
    outputError: (error) => listeners.get('output')?.(error),
  });
  const code = await running;
  return { code, stdout, stderr, exits, listeners: listeners.size };
}
