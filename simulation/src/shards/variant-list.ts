import type { Variant } from '../harness/mechanism.ts';
import type { guarantees } from './guarantees.ts';

export const variants: readonly Variant<keyof typeof guarantees>[] = [];
