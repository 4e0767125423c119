import { strict as assert } from 'node:assert';

/** The answer of a service to a look at its health. */
export type Health = 'healthy' | 'unhealthy' | 'not-responding';

/**
 * The role of a service, as far as its agent knows.
 *
 * - `neutral`: nothing is known, so the service may be active. At the start of the agent, and when
 *   the service has not answered. Left by a `become-standby` that succeeds.
 * - `standby`: it has confirmed that. Only from here the agent campaigns.
 * - `activating`: the seat is ours, and `become-active` runs.
 * - `active`: it has confirmed that.
 * - `stopping`: the term is over, or must end. Left when the service is certainly not active any more.
 */
export type ServiceRole =
  | { readonly role: 'neutral' }
  | { readonly role: 'standby' }
  | { readonly role: 'activating'; readonly token: bigint }
  | { readonly role: 'active'; readonly token: bigint }
  | { readonly role: 'stopping'; readonly token: bigint };

export type ServiceState = ServiceRole & {
  /**
   * The newest term whose `become-active` got no answer. It may still have its effect, in whatever
   * role the service is. So `become-standby` is no proof, and no term may end as clean.
   */
  readonly doubt?: bigint;
};

export type ServiceEvent =
  /**
   * `isSame`: the process is known to be the one that was activated. Otherwise one that did not
   * respond may have been replaced by another one.
   */
  | { readonly type: 'health'; readonly health: Health; readonly isSame?: boolean }
  /** The process of `--pid` has ended: its service is gone, or is another process in any role. */
  | { readonly type: 'process-ended' }
  /** `fencedSince`: the newest term of another leader. It has fenced this service. */
  | {
      readonly type: 'term-begins';
      readonly token: bigint;
      readonly fencedSince?: bigint | undefined;
    }
  | { readonly type: 'activated' }
  /** `cutOff`: `become-active` was begun, and got no answer. */
  | { readonly type: 'term-ends'; readonly cutOff: boolean }
  | { readonly type: 'became-standby' }
  /** No process of the service is left. */
  | { readonly type: 'killed' };

/** The next state. Does no I/O. The same object when nothing has changed. */
export function nextServiceState(state: ServiceState, event: ServiceEvent): ServiceState {
  switch (event.type) {
    case 'health':
      if (event.health !== 'not-responding' || event.isSame === true) return state;
      // While it is made active it may be busy, and that call is the one that tells.
      return state.role === 'activating' ? state : unknown(state);
    case 'process-ended':
      return unknown(state);
    case 'term-begins': {
      assert(state.role === 'standby', 'only a service in standby campaigns');
      const { doubt } = state;
      const { token, fencedSince } = event;
      const isFenced = doubt !== undefined && fencedSince !== undefined && fencedSince > doubt;
      return withDoubt({ role: 'activating', token }, isFenced ? undefined : doubt);
    }
    case 'activated':
      assert(state.role === 'activating', 'a service is activated once in a term');
      return withDoubt({ role: 'active', token: state.token }, state.doubt);
    case 'term-ends': {
      assert('token' in state, 'a term that ends has begun');
      const { token, doubt } = state;
      return withDoubt({ role: 'stopping', token }, event.cutOff ? token : doubt);
    }
    case 'became-standby':
      if (state.role !== 'neutral' && state.role !== 'stopping') return state;
      return withDoubt({ role: 'standby' }, state.doubt);
    case 'killed':
      // Another process will come, in a role that nobody knows.
      return { role: 'neutral' };
    default:
      return event satisfies never;
  }
}

/** What is known of a process ends with that process. Another one may be there, in any role. */
function unknown(state: ServiceState): ServiceState {
  switch (state.role) {
    case 'standby':
      return withDoubt({ role: 'neutral' }, state.doubt);
    case 'activating':
    case 'active':
      return withDoubt({ role: 'stopping', token: state.token }, state.doubt);
    default:
      return state;
  }
}

function withDoubt(role: ServiceRole, doubt: bigint | undefined): ServiceState {
  return doubt === undefined ? role : { ...role, doubt };
}

/** The service does not act for a term. With a doubt that is so only for now. */
export function isSettled({ role }: ServiceState): boolean {
  return role === 'standby' || role === 'neutral';
}
