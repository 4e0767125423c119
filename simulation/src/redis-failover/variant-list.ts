import type { Variant } from '../harness/mechanism.ts';

/** Managers and clients, broken on purpose. */
export const redisFailoverVariants: readonly Variant[] = [];
