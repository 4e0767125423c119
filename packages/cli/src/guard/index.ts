export type { GuardErrorCode } from './errors.ts';
export { GuardError } from './errors.ts';
export type { FoundProgram, ProgramProblem } from './find-program.ts';
export { findProgram } from './find-program.ts';
export type { GuardOptions, ProgramSpec } from './guard.ts';
export { Guard } from './guard.ts';
export { withoutNodeVariables } from './node-variables.ts';
export type { GuardedProgram } from './program.ts';
export type { ForwardedSignal, Heir, ProgramExit } from './protocol.ts';
