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
 * - `stopping`: the term is over. Left when the service is certainly not active any more.
 */
export type ServiceState =
  | { readonly role: 'neutral' }
  | { readonly role: 'standby' }
  | { readonly role: 'activating'; readonly token: bigint }
  | { readonly role: 'active'; readonly token: bigint }
  | {
      readonly role: 'stopping';
      readonly token: bigint;
      /**
       * `become-active` got no answer, so it may still have its effect. `become-standby` alone is
       * then no proof: the next leader shall fence this service.
       */
      readonly isUnsure: boolean;
      readonly isStandby: boolean;
    };

export type ServiceEvent =
  | { readonly type: 'health'; readonly health: Health }
  | { readonly type: 'term-begins'; readonly token: bigint }
  | { readonly type: 'activated' }
  /** `cutOff`: `become-active` was begun, and got no answer. */
  | { readonly type: 'term-ends'; readonly cutOff: boolean }
  | { readonly type: 'became-standby' }
  /** No process of the service is left. */
  | { readonly type: 'killed' }
  | { readonly type: 'belief-over' };

/** The next state. Does no I/O. */
export function nextServiceState(state: ServiceState, event: ServiceEvent): ServiceState {
  switch (event.type) {
    case 'health':
      // A service that was away may come back in any role.
      return event.health === 'not-responding' && state.role === 'standby'
        ? { role: 'neutral' }
        : state;
    case 'term-begins':
      assert(state.role === 'standby', 'only a service in standby campaigns');
      return { role: 'activating', token: event.token };
    case 'activated':
      assert(state.role === 'activating', 'a service is activated once in a term');
      return { role: 'active', token: state.token };
    case 'term-ends':
      assert(state.role === 'activating' || state.role === 'active', 'a term that ends has begun');
      return { role: 'stopping', token: state.token, isUnsure: event.cutOff, isStandby: false };
    case 'became-standby':
      if (state.role === 'neutral') return { role: 'standby' };
      if (state.role !== 'stopping') return state;
      return state.isUnsure ? { ...state, isStandby: true } : { role: 'standby' };
    case 'killed':
      // Another process will come, in a role that nobody knows.
      return { role: 'neutral' };
    case 'belief-over':
      if (state.role !== 'stopping') return state;
      // From here on the seat cannot be given back as clean.
      return state.isStandby ? { role: 'standby' } : { ...state, isUnsure: false };
    default:
      return event satisfies never;
  }
}

/** The term may be settled: the service does not act for it any more. */
export function isSettled({ role }: ServiceState): boolean {
  return role === 'standby' || role === 'neutral';
}
