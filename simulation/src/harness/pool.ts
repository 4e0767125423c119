import { Worker } from 'node:worker_threads';
import type { Copies } from './packages.ts';
import type { Job, Report } from './worker.ts';

/** A thread that runs seeds against one build of the packages, one job at a time. */
export class SeedRunner {
  readonly #worker: Worker;

  constructor(copies: Copies = {}) {
    this.#worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: copies });
  }

  run(job: Job): Promise<Report> {
    return new Promise((resolve, reject) => {
      const onError = (error: Error) => reject(error);
      this.#worker.once('error', onError);
      this.#worker.once('message', (report: Report) => {
        this.#worker.off('error', onError);
        resolve(report);
      });
      this.#worker.postMessage(job);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
