import { strict as assert } from 'node:assert';

/**
 * The answer of a service to a look at its health.
 *
 * - `disconnected`: the connection was refused or broke off, so its process may have ended.
 * - `not-responding`: no answer in time.
 */
export type Health = 'healthy' | 'unhealthy' | 'not-responding' | 'disconnected';

/**
 * The role of a service, as far as its agent knows.
 *
 * - `neutral`: nothing is known, so the service may be active. At the start of the agent, and when
 *   the service has not answered. Left by a `become-standby` that succeeds.
 * - `standby`: it has confirmed that. Only from here the agent campaigns.
 * - `activating`: the seat is ours, and `become-active` runs.
 * - `active`: it has confirmed that.
 * - `stopping`: the term is over, or must end. Left when the service is certainly not active any more.
 *   `isUnsure`: `become-active` got no answer, and may still have its effect. Then a `become-standby` is
 *   no proof, and only a kill is.
 */
export type ServiceState =
  | { readonly role: 'neutral' }
  | { readonly role: 'standby' }
  | { readonly role: 'activating'; readonly token: bigint }
  | { readonly role: 'active'; readonly token: bigint }
  | { readonly role: 'stopping'; readonly token: bigint; readonly isUnsure: boolean };

export type ServiceEvent =
  /**
   * `isSame`: the process is known to be the one that was activated. Otherwise one that broke a
   * connection off may have been replaced by another one.
   */
  | { readonly type: 'health'; readonly health: Health; readonly isSame?: boolean }
  /** The process of `--pid` has ended: its service is gone, or is another process in any role. */
  | { readonly type: 'process-ended' }
  | { readonly type: 'term-begins'; readonly token: bigint }
  | { readonly type: 'activated' }
  /** `isUnsure`: `become-active` was begun, and got no answer. */
  | { readonly type: 'term-ends'; readonly isUnsure: boolean }
  | { readonly type: 'became-standby' }
  /** No process of the service is left. */
  | { readonly type: 'killed' };

/** The next state. Does no I/O. The same object when nothing has changed. */
export function nextServiceState(state: ServiceState, event: ServiceEvent): ServiceState {
  switch (event.type) {
    case 'health':
      return afterLook(state, event.health, event.isSame === true);
    case 'process-ended':
      return unknown(state);
    case 'term-begins':
      assert(state.role === 'standby', 'only a service in standby campaigns');
      return { role: 'activating', token: event.token };
    case 'activated':
      assert(state.role === 'activating', 'a service is activated once in a term');
      return { role: 'active', token: state.token };
    case 'term-ends':
      assert('token' in state, 'a term that ends has begun');
      return { role: 'stopping', token: state.token, isUnsure: event.isUnsure };
    case 'became-standby':
      if (state.role === 'neutral') return { role: 'standby' };
      return state.role === 'stopping' && !state.isUnsure ? { role: 'standby' } : state;
    case 'killed':
      // Another process will come, in a role that nobody knows.
      return { role: 'neutral' };
    default:
      return event satisfies never;
  }
}

function afterLook(state: ServiceState, health: Health, isSame: boolean): ServiceState {
  const mayHaveEnded = health === 'disconnected' && !isSame;
  if (!mayHaveEnded && health !== 'not-responding') return state;
  switch (state.role) {
    case 'standby':
      return { role: 'neutral' };
    case 'active':
      // One that is only slow is left to the failures that are allowed.
      return mayHaveEnded ? unknown(state) : state;
    // While it is made active it may be busy, and that call is the one that tells.
    case 'activating':
    case 'stopping':
    case 'neutral':
      return state;
    default:
      return state satisfies never;
  }
}

/** The role is forgotten with the process that had it. Another one may be there, in any role. */
function unknown(state: ServiceState): ServiceState {
  switch (state.role) {
    case 'standby':
      return { role: 'neutral' };
    case 'activating':
    case 'active':
      return { role: 'stopping', token: state.token, isUnsure: false };
    case 'stopping':
    case 'neutral':
      return state;
    default:
      return state satisfies never;
  }
}

/** The service does not act for a term. */
export function isSettled({ role }: ServiceState): boolean {
  return role === 'standby' || role === 'neutral';
}
