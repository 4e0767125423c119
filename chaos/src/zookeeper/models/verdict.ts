import type { Guarantee } from '../findings.ts';

/** A problem that a model finds. */
export interface Problem {
  readonly guarantee: Guarantee;
  readonly what: string;
}
