/** Walks one machine in a thread of its own. */
import { parentPort, workerData } from 'node:worker_threads';
import { runInBackground } from '../harness/background.ts';
import type { Bounds } from './subject.ts';
import { brokenMachineOf, pathOf } from './subject.ts';
import { subjectNamed } from './subjects.ts';

export interface Job {
  readonly subject: string;
  /** The place of the break in the subject's list. Default: the machine as it is. */
  readonly broken?: number;
  readonly bounds: Bounds;
}

export interface WorkerData {
  readonly job: Job;
  readonly isBackground: boolean;
}

const { job, isBackground } = workerData as WorkerData;
if (isBackground) runInBackground();
const subject = subjectNamed(job.subject);
const broken = job.broken === undefined ? undefined : subject.breaks[job.broken];
const machine = await (broken === undefined
  ? import(pathOf(subject))
  : brokenMachineOf(subject, broken));
parentPort?.postMessage(await subject.explore(machine, job.bounds));
