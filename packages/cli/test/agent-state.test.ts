import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ServiceEvent, ServiceState } from '../src/agent/service-state.ts';
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

test('a service that did not respond may come back in any role; one that is only unwell stays', () => {
  const standby: ServiceEvent = { type: 'became-standby' };
  expect(after(standby, { type: 'health', health: 'not-responding' })).toEqual({ role: 'neutral' });
  expect(after(standby, { type: 'health', health: 'unhealthy' })).toEqual({ role: 'standby' });
  expect(after(...led, { type: 'health', health: 'not-responding' }).role).toBe('active');
});

test('a term is settled by a confirmed standby', () => {
  const ends: ServiceEvent = { type: 'term-ends', cutOff: false };
  expect(isSettled(after(...led, ends))).toBe(false);
  expect(after(...led, ends, { type: 'became-standby' })).toEqual({ role: 'standby' });
});

test('after a become-active without an answer a standby settles only when belief is over', () => {
  const begun = led.slice(0, 2);
  const ends: ServiceEvent = { type: 'term-ends', cutOff: true };
  const standby: ServiceEvent = { type: 'became-standby' };
  expect(isSettled(after(...begun, ends, standby))).toBe(false);
  expect(after(...begun, ends, standby, { type: 'belief-over' })).toEqual({ role: 'standby' });
  expect(isSettled(after(...begun, ends, { type: 'belief-over' }))).toBe(false);
  expect(after(...begun, ends, { type: 'belief-over' }, standby)).toEqual({ role: 'standby' });
});

test('a killed service settles its term, and is not standby', () => {
  const ends: ServiceEvent = { type: 'term-ends', cutOff: true };
  const killed = after(...led.slice(0, 2), ends, { type: 'killed' });
  expect(killed).toEqual({ role: 'neutral' });
  expect(isSettled(killed)).toBe(true);
});

const anyEvent: fc.Arbitrary<ServiceEvent> = fc.oneof(
  fc.constantFrom('healthy', 'unhealthy', 'not-responding').map((health) => ({
    type: 'health' as const,
    health: health as 'healthy',
  })),
  fc.constantFrom<ServiceEvent>(
    { type: 'term-begins', token: 1n },
    { type: 'activated' },
    { type: 'term-ends', cutOff: true },
    { type: 'term-ends', cutOff: false },
    { type: 'became-standby' },
    { type: 'killed' },
    { type: 'belief-over' },
  ),
);

test('whatever happens, a term that has begun settles only by a standby or a kill', () => {
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
        if (isSettled(before) || !isSettled(state)) continue;
        const confirmed = before.role === 'stopping' && before.isStandby;
        expect(
          event.type === 'killed' || event.type === 'became-standby' || confirmed,
          `${before.role} → ${state.role} by ${event.type}`,
        ).toBe(true);
        if (before.role === 'stopping' && before.isUnsure && event.type !== 'killed') {
          expect(event.type).toBe('belief-over');
        }
      }
    }),
  );
});
