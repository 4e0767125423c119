import type { Guarantee } from '../findings.ts';

/** What a model finds wrong. */
export interface Problem {
  readonly guarantee: Guarantee;
  readonly what: string;
}
