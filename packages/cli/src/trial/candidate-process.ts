import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { markOf, send } from './processes.ts';

// Programs to be started, so the built ones, also where the sources of this file are used.
const built = (path: string) => fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));
export const cliFile: string = built('bin.js');
export const workerFile: string = built('trial/worker.js');

export interface CandidateProcessOptions {
  /** Without white space. */
  readonly id: string;
  readonly election: string;
  readonly store: string;
  readonly lease: string;
  /** Where its worker leaves its effects. */
  readonly log: string;
  /** Its worker ignores TERM. */
  readonly stubborn?: boolean;
  /** Further options of `run`. */
  readonly options?: readonly string[];
  /** In place of `incumbent`: a JavaScript file that takes the same words. */
  readonly command?: string;
  readonly onReport: (report: RunReport) => void;
}

/** One line that `run` wrote on stderr. */
export interface RunReport {
  /** `stderr`: not an event but text, which should not appear. */
  readonly event: string;
  /** As ISO 8601 has it. */
  readonly time?: string;
  readonly token?: string;
  readonly reason?: string;
  readonly text?: string;
}

/** One `incumbent run` of the trial's worker, in a session of its own: signals are ours to send. */
export class CandidateProcess {
  readonly id: string;
  readonly pid: number;
  /** How it ended; settles when everything it wrote has been reported. */
  readonly ended: Promise<string>;
  #child: ChildProcess;
  #hasEnded = false;

  constructor(options: CandidateProcessOptions) {
    const { id, election, store, lease, log, command = cliFile, onReport } = options;
    this.id = id;
    this.#child = spawn(
      process.execPath,
      [
        ...[command, 'run', '-e', election, '--store', store, '--id', id, '--lease', lease],
        ...['--json', ...(options.options ?? [])],
        ...['--', process.execPath, workerFile, log, String(process.pid)],
        ...(options.stubborn ? ['--stubborn'] : []),
      ],
      {
        detached: true,
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, ...markOf(log) },
      },
    );
    this.#child.on('error', () => {});
    if (this.#child.pid === undefined) throw new Error(`no process could be started for ${id}`);
    this.pid = this.#child.pid;
    const lines = createInterface({ input: this.#child.stderr as Readable });
    lines.on('line', (line) => onReport(parseReport(line)));
    this.#child.once('exit', () => {
      this.#hasEnded = true;
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        const how = signal ?? `exit code ${code}`;
        this.#child.once('close', () => resolve(how));
        // A guard that is frozen holds the pipe open.
        setTimeout(() => resolve(how), 200);
      });
    });
  }

  /** Not any more once it has ended: the number may be another's. */
  signal(name: NodeJS.Signals): void {
    if (!this.#hasEnded) send(this.pid, name);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }
}

function parseReport(line: string): RunReport {
  try {
    const report: unknown = JSON.parse(line);
    if (typeof report === 'object' && report !== null && 'event' in report) {
      return report as RunReport;
    }
  } catch {
    // Not JSON.
  }
  return { event: 'stderr', text: line };
}
