import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { CandidateMessage, CandidatePlan, Command } from './messages.ts';

type MessageOf<Type extends CandidateMessage['type']> = Extract<CandidateMessage, { type: Type }>;

const ourProgram = fileURLToPath(new URL('./our-candidate.js', import.meta.url));
const kazooProgram = fileURLToPath(new URL('../../cutoff/kazoo_candidate.py', import.meta.url));
const patienceMs = 60_000;

/** A process that campaigns and says what it believes. */
export class CandidateProcess {
  readonly id: string;
  readonly messages: CandidateMessage[] = [];
  readonly #child: ChildProcess;
  readonly #listeners = new Set<(message: CandidateMessage) => void>();
  readonly #ended: Promise<void>;
  #errors = '';
  #hasEnded = false;

  /** @param under what the process is started under, such as `nsenter --net=…` */
  constructor(who: 'ours' | 'kazoo', under: readonly string[], plan: CandidatePlan) {
    this.id = plan.id;
    const program = who === 'ours' ? [process.execPath, ourProgram] : [python, kazooProgram];
    const [file = '', ...words] = [...under, ...program, JSON.stringify(plan)];
    this.#child = spawn(file, words, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stdin?.on('error', () => {}); // it has ended
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString('utf8')).slice(-2_000);
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once('close', () => {
        this.#hasEnded = true;
        this.#tell({ type: 'failed', message: `the process ended; it printed: ${this.#errors}` });
        resolve();
      });
    });
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream });
    lines.on('line', (line) => this.#tell(JSON.parse(line) as CandidateMessage));
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  find<Type extends CandidateMessage['type']>(type: Type): MessageOf<Type> | undefined {
    return this.messages.find((message) => message.type === type) as MessageOf<Type> | undefined;
  }

  all<Type extends CandidateMessage['type']>(type: Type): MessageOf<Type>[] {
    return this.messages.filter((message) => message.type === type) as MessageOf<Type>[];
  }

  /** The first message of that type since the start, or the next one. Rejects when it fails. */
  async first<Type extends CandidateMessage['type']>(type: Type): Promise<MessageOf<Type>> {
    return this.find(type) ?? this.next(type);
  }

  next<Type extends CandidateMessage['type']>(
    type: Type,
    accepts: (message: MessageOf<Type>) => boolean = () => true,
  ): Promise<MessageOf<Type>> {
    return new Promise((resolve, reject) => {
      const listener = (message: CandidateMessage): void => {
        if (message.type === type && accepts(message as MessageOf<Type>)) {
          end();
          resolve(message as MessageOf<Type>);
        } else if (message.type === 'failed') {
          end();
          reject(new Error(`${this.id}: ${message.message}`));
        }
      };
      const timer = setTimeout(() => {
        end();
        const printed = this.#errors === '' ? '' : `; it printed: ${this.#errors}`;
        reject(new Error(`${this.id}: no "${type}" within ${patienceMs / 1000} s${printed}`));
      }, patienceMs);
      const end = (): void => {
        clearTimeout(timer);
        this.#listeners.delete(listener);
      };
      this.#listeners.add(listener);
      const failed = this.find('failed');
      if (failed !== undefined) listener(failed);
    });
  }

  command(command: Command): void {
    this.#child.stdin?.write(`${command}\n`);
  }

  async report(): Promise<MessageOf<'report'>> {
    const report = this.next('report');
    this.command('report');
    return report;
  }

  async kill(): Promise<void> {
    if (!this.#hasEnded) this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #tell(message: CandidateMessage): void {
    this.messages.push(message);
    for (const listener of this.#listeners) listener(message);
  }
}

/** Debian's kazoo belongs to Debian's Python, which need not be the first in the path. */
export const python = '/usr/bin/python3';
