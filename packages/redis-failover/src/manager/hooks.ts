import type { NodeAddress } from '../node-address.ts';
import type { ManagerStep } from './events.ts';

/**
 * For tests: they stop a manager in the middle of a move, or break a rule to prove that a check
 * notices.
 */
export interface ManagerHooks {
  readonly onStep?: (
    step: `before ${ManagerStep}` | `after ${ManagerStep}`,
  ) => void | Promise<void>;
  /**
   * The address at which a node is really reached, so that a proxy can cut one manager off from it.
   */
  readonly reach?: (address: NodeAddress) => NodeAddress;
  readonly broken?: readonly BrokenRule[];
}

export type BrokenRule =
  /** Does not wait until the views of clients are over. */
  | 'no-view-wait'
  /** Does not close the connections of earlier managers. */
  | 'no-manager-fence'
  /** Writes znodes without checking that its term holds. */
  | 'no-term-check'
  /** Does not check that its term holds before it changes a Redis or a znode. */
  | 'no-assert'
  /** Promotes the replica that has the least data. */
  | 'any-replica'
  /** Moves the primary away from a node that answers, without pausing its writes first. */
  | 'no-pause';
