import { Worker } from 'node:worker_threads';
import type { Copies } from './packages.ts';
import type { Job, Report, WorkerData } from './worker.ts';

/** A seed makes much that is soon forgotten: with room for it, less time goes to collecting it. */
const maxYoungGenerationSizeMb = 128;

/** A job that is under way. */
interface Current {
  readonly job: Job;
  readonly resolve: (report: Report) => void;
  readonly reject: (error: Error) => void;
}

/** A thread that runs seeds against one build of the packages, one job at a time. */
export class SeedRunner {
  readonly #copies: Copies;
  readonly #background: AbortSignal | undefined;
  #worker: Worker;
  #current: Current | undefined;

  /** @param background until it is aborted the seeds run at the lowest priority */
  constructor(copies: Copies = {}, background?: AbortSignal) {
    this.#copies = copies;
    this.#background = background;
    this.#worker = this.#start();
    background?.addEventListener('abort', this.#hurry);
  }

  run(job: Job): Promise<Report> {
    return new Promise((resolve, reject) => {
      this.#current = { job, resolve, reject };
      this.#worker.postMessage(job);
    });
  }

  async close(): Promise<void> {
    this.#background?.removeEventListener('abort', this.#hurry);
    await this.#worker.terminate();
  }

  #start(): Worker {
    const isBackground = this.#background?.aborted === false;
    const workerData: WorkerData = { copies: this.#copies, isBackground };
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb },
    });
    const settle = (how: (current: Current) => void) => {
      const current = this.#current;
      if (worker !== this.#worker || current === undefined) return;
      this.#current = undefined;
      how(current);
    };
    worker.on('error', (error: Error) => settle(({ reject }) => reject(error)));
    worker.on('message', (report: Report) => settle(({ resolve }) => resolve(report)));
    return worker;
  }

  /**
   * A process that may not raise a priority can begin anew at another one: seeds take the same
   * course again.
   */
  readonly #hurry = (): void => {
    void this.#worker.terminate();
    this.#worker = this.#start();
    if (this.#current !== undefined) this.#worker.postMessage(this.#current.job);
  };
}
