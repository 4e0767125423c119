/** The contract between a store and the lease race. */
export type {
  LeaseStore,
  Leases,
  LeaseTraits,
  Reading,
  SwapResult,
  Version,
} from '../../core/lease-store.ts';
