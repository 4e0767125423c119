import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Health, ServiceEvent, ServiceState } from '../src/agent/service-state.ts';
import { isSettled, nextServiceState } from '../src/agent/service-state.ts';

const after = (...events: ServiceEvent[]) =>
  events.reduce(nextServiceState, { role: 'neutral' } as ServiceState);
const led: ServiceEvent[] = [
  { type: 'became-standby' },
  { type: 'term-begins', token: 7n },
  { type: 'activated' },
];

test('a service of which nothing is known must become standby before it campaigns', () => {
  expect(after()).toEqual({ role: 'neutral' });
  expect(after({ type: 'health', health: 'healthy' })).toEqual({ role: 'neutral' });
  expect(() => after({ type: 'term-begins', token: 1n })).toThrow(/only a service in standby/);
  expect(after({ type: 'became-standby' })).toEqual({ role: 'standby' });
});

const look = (health: Health, isSame = false): ServiceEvent => ({ type: 'health', health, isSame });
const standby: ServiceEvent = { type: 'became-standby' };
const ends = (isUnsure: boolean): ServiceEvent => ({ type: 'term-ends', isUnsure });

test('a service that did not respond may come back in any role; one that is only unwell stays', () => {
  expect(after(standby, look('not-responding'))).toEqual({ role: 'neutral' });
  expect(after(standby, look('disconnected'))).toEqual({ role: 'neutral' });
  expect(after(standby, look('unhealthy'))).toEqual({ role: 'standby' });
});

test('what is known of a process ends with it: also the term for which it was active', () => {
  const stopping = { role: 'stopping', token: 7n, isUnsure: false };
  expect(after(...led, look('disconnected'))).toEqual(stopping);
  expect(after(...led, { type: 'process-ended' })).toEqual(stopping);
  expect(after(...led, look('unhealthy')).role).toBe('active');
  // Known to be the same one, it is only slow.
  expect(after(...led, look('disconnected', true)).role).toBe('active');
  // While it is made active it may be busy; but another process was not made active.
  const activating = led.slice(0, 2);
  expect(after(...activating, look('disconnected')).role).toBe('activating');
  expect(after(...activating, { type: 'process-ended' })).toEqual(stopping);
  expect(after(standby, { type: 'process-ended' })).toEqual({ role: 'neutral' });
});

test('a look that took too long does not end a term by itself: failures are counted elsewhere', () => {
  expect(after(...led, look('not-responding'))).toEqual({ role: 'active', token: 7n });
});

test('a term is settled by a confirmed standby', () => {
  expect(isSettled(after(...led, ends(false)))).toBe(false);
  expect(after(...led, ends(false), standby)).toEqual({ role: 'standby' });
});

test('after a become-active without an answer a standby is no proof, and only a kill is', () => {
  const unsure = [...led.slice(0, 2), ends(true)];
  expect(after(...unsure, standby)).toEqual({ role: 'stopping', token: 7n, isUnsure: true });
  // A process that ended may have been replaced by one that got the call.
  expect(isSettled(after(...unsure, { type: 'process-ended' }))).toBe(false);
  expect(after(...unsure, { type: 'killed' })).toEqual({ role: 'neutral' });
});

const anyEvent: fc.Arbitrary<ServiceEvent> = fc.oneof(
  fc
    .tuple(
      fc.constantFrom<Health>('healthy', 'unhealthy', 'not-responding', 'disconnected'),
      fc.boolean(),
    )
    .map(([health, isSame]) => look(health, isSame)),
  fc.bigInt({ min: 1n, max: 3n }).map((token) => ({ type: 'term-begins' as const, token })),
  fc.boolean().map(ends),
  fc.constantFrom<ServiceEvent>(
    { type: 'activated' },
    standby,
    { type: 'killed' },
    { type: 'process-ended' },
  ),
);

test('whatever happens, a term settles only by a kill, or by a standby that is a proof', () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
      let state: ServiceState = { role: 'neutral' };
      for (const event of events) {
        const before = state;
        try {
          state = nextServiceState(state, event);
        } catch {
          // An event that cannot happen there.
          continue;
        }
        // A term is never replaced by another one.
        if ('token' in before && 'token' in state) expect(state.token).toBe(before.token);
        if (isSettled(before) || !isSettled(state)) continue;
        expect(['killed', 'became-standby'], `${before.role} → ${state.role}`).toContain(
          event.type,
        );
        // Only a role that was left is confirmed by an answer.
        if (event.type === 'became-standby') {
          expect(before).toMatchObject({ role: 'stopping', isUnsure: false });
        }
      }
    }),
  );
});
