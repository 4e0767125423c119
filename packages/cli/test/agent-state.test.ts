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

const silent: ServiceEvent = { type: 'health', health: 'not-responding' };
const standby: ServiceEvent = { type: 'became-standby' };
const ends = (cutOff: boolean): ServiceEvent => ({ type: 'term-ends', cutOff });
const begins = (token: bigint, fencedSince?: bigint): ServiceEvent => ({
  type: 'term-begins',
  token,
  fencedSince,
});

test('a service that did not respond may come back in any role; one that is only unwell stays', () => {
  expect(after(standby, silent)).toEqual({ role: 'neutral' });
  expect(after(standby, { type: 'health', health: 'unhealthy' })).toEqual({ role: 'standby' });
});

test('what is known of a process ends with it: also the term for which it was active', () => {
  expect(after(...led, silent)).toEqual({ role: 'stopping', token: 7n });
  expect(after(...led, { type: 'process-ended' })).toEqual({ role: 'stopping', token: 7n });
  expect(after(...led, { type: 'health', health: 'unhealthy' }).role).toBe('active');
  // Known to be the same one, it is only slow.
  expect(after(...led, { ...silent, isSame: true }).role).toBe('active');
  // While it is made active it may be busy; but another process was not made active.
  const activating = led.slice(0, 2);
  expect(after(...activating, silent).role).toBe('activating');
  expect(after(...activating, { type: 'process-ended' }).role).toBe('stopping');
  expect(after(standby, { type: 'process-ended' })).toEqual({ role: 'neutral' });
});

test('a term is settled by a confirmed standby', () => {
  expect(isSettled(after(...led, ends(false)))).toBe(false);
  expect(after(...led, ends(false), standby)).toEqual({ role: 'standby' });
});

test('a become-active without an answer is a doubt that a standby does not end', () => {
  const unsure = [...led.slice(0, 2), ends(true), standby];
  expect(after(...unsure)).toEqual({ role: 'standby', doubt: 7n });
  expect(after(...unsure, silent)).toEqual({ role: 'neutral', doubt: 7n });
  // The same agent wins again, and this time the service becomes active at once.
  const again = [...unsure, begins(8n), { type: 'activated' } as const];
  expect(after(...again)).toEqual({ role: 'active', token: 8n, doubt: 7n });
  expect(after(...again, ends(false), standby)).toEqual({ role: 'standby', doubt: 7n });
});

test('a doubt ends when no process is left, or another leader has fenced the service', () => {
  const unsure = [...led.slice(0, 2), ends(true), standby];
  expect(after(...unsure, { type: 'killed' })).toEqual({ role: 'neutral' });
  expect(after(...unsure, begins(9n, 8n))).toEqual({ role: 'activating', token: 9n });
  // That leader led before.
  expect(after(...unsure, begins(9n, 6n))).toMatchObject({ doubt: 7n });
  // A process that ended may have been replaced by one that got the call.
  expect(after(...unsure, { type: 'process-ended' })).toMatchObject({ doubt: 7n });
});

test('a killed service settles its term, and is not standby', () => {
  const killed = after(...led.slice(0, 2), ends(true), { type: 'killed' });
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
    { type: 'process-ended' },
  ),
);

test('whatever happens, a term settles only by a standby or a kill, and a doubt ends only by a kill', () => {
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
        const [was, is] = [before.doubt, state.doubt];
        if (was !== undefined && is === undefined) expect(event.type).toBe('killed');
        if (isSettled(before) || !isSettled(state)) continue;
        expect(['killed', 'became-standby'], `${before.role} → ${state.role}`).toContain(event.type);
        // Only a role that was left is confirmed by an answer.
        if (event.type === 'became-standby') expect(before.role).toBe('stopping');
      }
    }),
  );
});
