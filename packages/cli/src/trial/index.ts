/**
 * The tools for a trial on real processes, shared by `incumbent demo` and the chaos of this
 * repository. They are candidates under `incumbent run`, the worker they run, the log the worker
 * writes to, and the judge of that log.
 */
export {
  CandidateProcess,
  type CandidateProcessOptions,
  cliFile,
  type RunReport,
  workerFile,
} from './candidate-process.ts';
export { type Effect, formatEffect, parseEffect } from './effect.ts';
export { FencedLog } from './fenced-log.ts';
export { type Guarantee, Judge, type TermActivity, type Violation } from './judge.ts';
export { childrenOf, isGroupGone, livingOf, processesOf, send } from './processes.ts';
export { waitUntil } from './wait-until.ts';
