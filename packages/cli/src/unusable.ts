import type { TimingLimits } from 'incumbent';
import type { OpenStore } from './context.ts';
import type { Finding } from './doctor/finding.ts';
import { CommandError, exitCodes } from './failure.ts';

/** The facts that are known of a store that cannot be used. */
export interface KnownOfStore {
  /** In its plain form, without secrets. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
  readonly limits?: TimingLimits;
}

/** No election can be held there, and `doctor` judges all the same what it can. */
export class UnusableStoreError extends CommandError {
  override readonly name: string = 'UnusableStoreError';
  readonly known: KnownOfStore;

  constructor(code: string, message: string, known: KnownOfStore, options?: ErrorOptions) {
    super(code, exitCodes.storeUnavailable, message, options);
    this.known = known;
  }

  /** The findings made before the store was given up. */
  findings(): readonly Finding[] {
    return [];
  }
}
