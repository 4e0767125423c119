import type { NodeAddress } from '../node-address.ts';
import type { ManagerStep } from './events.ts';

/** For tests that stop a manager in mid-move, or break a rule to see that somebody notices. */
export interface ManagerHooks {
  readonly onStep?: (
    step: `before ${ManagerStep}` | `after ${ManagerStep}`,
  ) => void | Promise<void>;
  /** Where a node is really reached, so that one manager can be cut off from it by a proxy. */
  readonly reach?: (address: NodeAddress) => NodeAddress;
  readonly broken?: readonly BrokenRule[];
}

export type BrokenRule =
  /** Does not wait until the views of clients have lapsed. */
  | 'no-view-wait'
  /** Does not close the connections of earlier managers. */
  | 'no-manager-fence'
  /** Writes znodes without checking that its term holds. */
  | 'no-term-check'
  /** Does not look whether its term holds before it changes a Redis or a znode. */
  | 'no-assert'
  /** Promotes the replica that has the least. */
  | 'any-replica'
  /** Moves the primary away from a node that answers without stopping its writes first. */
  | 'no-pause';
