/** The tests of the repository, run on one mutant after the other. */
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Note } from './note-reached.ts';
import type { Suite } from './plan.ts';
import { compiled } from './plan.ts';
import type { Answer, Question } from './test-process.ts';
import { failsAgain, tookTooLong } from './twice.ts';

/** The cost of one test file, and the mutants that it reaches, where no mutant is switched on. */
export interface TestFile {
  readonly path: string;
  readonly ms: number;
  readonly slowestTestMs: number;
  readonly reached: ReadonlySet<number>;
}

export type Verdict =
  | { readonly kind: 'passed' }
  | {
      readonly kind: 'failed';
      readonly testFile: string;
      /** Undefined: it was no test of the file, but the file itself. */
      readonly testId: string | undefined;
      readonly text: string;
    }
  | { readonly kind: 'timeout'; readonly afterMs: number };

/** The processes of vitest that start, and their first tests, on a machine that does much else. */
const startAllowanceMs = 20_000;
/** Seeds find most of what the unit tests do not, in less time than all unit tests take. */
const quickMs = 6_000;
/** A test, or all tests together, may take so much longer than without a mutant. */
const slownessAllowed = 5;

/** @returns every test file, or why the code as it is does not pass */
export async function observeTests(
  suite: Suite,
  plan: string,
  notes: string,
): Promise<readonly TestFile[] | { readonly failure: string }> {
  const process = new TestProcess(suite, plan, { INCUMBENT_MUTATION_NOTES: notes });
  try {
    const { failure, runs } = await process.ask({
      mutant: undefined,
      testFiles: undefined,
      testId: undefined,
      testTimeoutMs: undefined,
    });
    if (failure !== undefined) return { failure: `${failure.testFile}: ${failure.text}` };
    const reached = new Map<string, Set<number>>();
    for (const file of runs.length === 0 ? [] : readdirSync(notes)) {
      const note = JSON.parse(readFileSync(join(notes, file), 'utf8')) as Note;
      reached.set(note.testFile, new Set(note.reached));
    }
    return runs.map(({ testFile, ms, slowestTestMs }) => ({
      path: testFile,
      ms,
      slowestTestMs,
      reached: reached.get(testFile) ?? new Set(),
    }));
  } finally {
    process.end();
  }
}

/** Tries mutants one at a time, in a process that is replaced when a mutant does not end. */
export class Tests {
  readonly #suite: Suite;
  readonly #plan: string;
  readonly #files: readonly TestFile[];
  /** Test files that pass by themselves without a mutant, as was seen. */
  readonly #controlled = new Set<string>();
  #process: TestProcess | undefined;

  constructor(suite: Suite, plan: string, files: readonly TestFile[]) {
    this.#suite = suite;
    this.#plan = plan;
    this.#files = files;
  }

  /**
   * The files that reach a mutant, in two parts: those that are tried before the seeds are, and those
   * that take longer.
   * @param mostMs what all of them may take together; the longest are left out
   * @param usefulness the files with the highest numbers run first, if they cost the same
   */
  filesFor(
    mutant: number,
    usefulness: (path: string) => number,
    mostMs: number,
  ): { readonly quick: readonly TestFile[]; readonly slow: readonly TestFile[] } {
    const price = ({ ms, path }: TestFile) => (ms + 50) / (1 + usefulness(path));
    const files = this.#files
      .filter(({ reached }) => reached.has(mutant))
      .sort((a, b) => price(a) - price(b));
    let sumMs = 0;
    const quick = files.filter(({ ms }) => {
      if (sumMs + ms > quickMs) return false;
      sumMs += ms;
      return true;
    });
    const others = files.filter((file) => !quick.includes(file));
    const slow = others.filter(({ ms }) => {
      sumMs += ms;
      return sumMs <= mostMs;
    });
    return { quick, slow };
  }

  try(mutant: number, files: readonly TestFile[]): Promise<Verdict> {
    if (this.#suite === 'unit') return this.#tryTogether(mutant, files);
    return failsAgain(mutant, files, (of, file, testId) => this.#run(of, [file], testId));
  }

  async #tryTogether(mutant: number, files: readonly TestFile[]): Promise<Verdict> {
    let left = files;
    for (let tries = 1; ; tries += 1) {
      const verdict = await this.#run(mutant, left);
      if (verdict.kind === 'passed') return verdict;
      const control = await this.#withoutMutant(verdict, left);
      if (control.kind === 'passed') return verdict;
      // It may have been what other mutants have left in the process.
      this.end();
      if (tries < 3) continue;
      const slow = slowFileIn(control);
      if (slow === undefined)
        throw new Error(`without a mutant a test fails: ${describeVerdict(control)}`);
      // The machine does much else: that file says nothing now.
      left = left.filter(({ path }) => path !== slow);
    }
  }

  /**
   * How the tests end without the mutant. A run that took too long is asked about each time: the
   * machine may have been the cause.
   */
  async #withoutMutant(verdict: Verdict, files: readonly TestFile[]): Promise<Verdict> {
    const testFile = verdict.kind === 'failed' ? verdict.testFile : '';
    const tookLong = tookTooLong(verdict);
    if (!tookLong && this.#controlled.has(testFile)) return { kind: 'passed' };
    const suspects = files.filter(({ path }) => testFile === '' || path === testFile);
    const control = await this.#run(undefined, suspects);
    if (control.kind === 'passed') this.#controlled.add(testFile);
    return control;
  }

  async #run(
    mutant: number | undefined,
    files: readonly TestFile[],
    testId?: string,
  ): Promise<Verdict> {
    if (files.length === 0) return { kind: 'passed' };
    const sumMs = files.reduce((sum, { ms }) => sum + ms, 0);
    const slowestMs = Math.max(...files.map(({ slowestTestMs }) => slowestTestMs));
    const limitMs = startAllowanceMs + slownessAllowed * sumMs;
    this.#process ??= new TestProcess(this.#suite, this.#plan, {});
    const answer = this.#process.ask({
      mutant,
      testFiles: files.map(({ path }) => path),
      testId,
      testTimeoutMs: Math.ceil(
        Math.min(Math.max(30_000, 2 * slowestMs), 5_000 + slownessAllowed * slowestMs),
      ),
    });
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), limitMs);
    });
    try {
      const first = await Promise.race([answer, timeout]);
      if (first === undefined) {
        this.end();
        return { kind: 'timeout', afterMs: limitMs };
      }
      return first.failure === undefined
        ? { kind: 'passed' }
        : { kind: 'failed', ...first.failure };
    } finally {
      clearTimeout(timer);
    }
  }

  end(): void {
    this.#process?.end();
    this.#process = undefined;
  }
}

/** The test file that took too long. */
function slowFileIn(verdict: Verdict): string | undefined {
  return verdict.kind === 'failed' && tookTooLong(verdict) ? verdict.testFile : undefined;
}

function describeVerdict(verdict: Verdict): string {
  return verdict.kind === 'failed' ? `${verdict.testFile}: ${verdict.text}` : verdict.kind;
}

const running = new Set<TestProcess>();

/** For the end of this process: each of them is a group of its own, which would go on. */
export function endTestProcesses(): void {
  for (const process of running) process.end();
}

/** Servers that are missing are a failure, and fewer tests of a file run at a time. */
const amongOthers = { CI: 'true', TESTS_ARE_BESIDE_OTHERS: '1' };

class TestProcess {
  readonly #child: ChildProcess;
  readonly #errors: string[] = [];

  constructor(suite: Suite, plan: string, env: Readonly<Record<string, string>>) {
    this.#child = fork(compiled('test-process'), [], {
      env: {
        ...process.env,
        ...(suite === 'integration' ? amongOthers : {}),
        ...env,
        INCUMBENT_MUTATION_SUITE: suite,
        INCUMBENT_MUTATION_PLAN: plan,
      },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // A group of its own: vitest has children, which must end with it.
      detached: true,
    });
    running.add(this);
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors.push(text);
      if (this.#errors.length > 20) this.#errors.shift();
    });
  }

  ask(question: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const onExit = () => {
        reject(new Error(`the process of the tests is gone: ${this.#errors.join('')}`));
      };
      this.#child.once('exit', onExit);
      this.#child.once('message', (answer: Answer) => {
        this.#child.off('exit', onExit);
        resolve(answer);
      });
      this.#child.send(question);
    });
  }

  end(): void {
    running.delete(this);
    this.#child.removeAllListeners('exit');
    const { pid } = this.#child;
    if (pid === undefined || this.#child.exitCode !== null) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It has just ended by itself.
    }
  }
}
