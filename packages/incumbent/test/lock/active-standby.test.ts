import { describe } from 'vitest';
import type {
  ActiveStandbyMember,
  ActiveStandbyState,
} from '../../src/backends/zookeeper/index.ts';
import { activeStandby } from '../../src/backends/zookeeper/index.ts';
import type { Arena, Member, MemberOptions } from './support.ts';
import { background, breadcrumbPath, inArena, lockPath, until } from './support.ts';

interface Joined extends Member {
  readonly calls: string[];
  readonly states: ActiveStandbyState[];
  readonly ended: Promise<unknown>;
  leave(): Promise<void>;
}

async function join(
  arena: Arena,
  id: string,
  calls: Partial<ActiveStandbyMember> = {},
  options: MemberOptions = {},
): Promise<Joined> {
  const member = await arena.member(id, options);
  const told: string[] = [];
  const states: ActiveStandbyState[] = [];
  const stop = new AbortController();
  const ended = activeStandby(
    member.election,
    {
      async becomeActive(term) {
        told.push('becomeActive');
        await calls.becomeActive?.(term);
      },
      async becomeStandby(leader) {
        told.push('becomeStandby');
        await calls.becomeStandby?.(leader);
      },
      async enterNeutralMode() {
        told.push('enterNeutralMode');
        await calls.enterNeutralMode?.();
      },
    },
    { signal: stop.signal, onState: (state) => void states.push(state) },
  ).catch((error: unknown) => error);
  return {
    ...member,
    calls: told,
    states,
    ended,
    async leave() {
      stop.abort(new Error('leave'));
      await ended;
    },
  };
}

describe('H2, H3: four states, and calls only on change', () => {
  inArena(
    'one becomes active, the others standby; a clean end makes another active',
    async ({ arena, expect }) => {
      const a = await join(arena, 'a');
      await until('a is active', () => a.states.at(-1) === 'ACTIVE');
      const b = await join(arena, 'b');
      await until('b is standby', () => b.states.at(-1) === 'STANDBY');
      await a.leave();
      expect(await a.ended).toMatchObject({ message: 'leave' });
      await until('b is active', () => b.states.at(-1) === 'ACTIVE');
      expect(a.calls).toEqual(['becomeActive', 'becomeStandby']);
      expect(b.calls).toEqual(['becomeStandby', 'becomeActive']);
      await b.leave();
    },
  );

  inArena(
    'the seat is not given back before becomeStandby has ended',
    async ({ arena, expect }) => {
      let finish = () => {};
      const finished = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const a = await join(arena, 'a', { becomeStandby: () => finished });
      await until('a is active', () => a.states.at(-1) === 'ACTIVE');
      const leaving = a.leave();
      await until('it is told', () => a.calls.includes('becomeStandby'));
      expect(arena.data(lockPath)).toBe('a');
      finish();
      await leaving;
      expect(arena.data(lockPath)).toBeUndefined();
      expect(arena.data(breadcrumbPath)).toBeUndefined();
    },
  );

  inArena('H9: a lost connection makes it neutral, and active again', async ({ arena, expect }) => {
    const a = await join(arena, 'a');
    await until('a is active', () => a.states.at(-1) === 'ACTIVE');
    arena.fake.dropConnections();
    await until('it was neutral', () => a.states.includes('NEUTRAL'));
    await until('a is active', () => a.states.at(-1) === 'ACTIVE');
    expect(a.calls).toEqual(['becomeActive', 'enterNeutralMode', 'becomeActive']);
    await a.leave();
  });

  inArena('H9: so does a session that ends', async ({ arena, expect }) => {
    const a = await join(arena, 'a');
    await until('a is active', () => a.states.at(-1) === 'ACTIVE');
    arena.fake.expireSession(a.client.session?.id as bigint);
    await until('it was neutral', () => a.states.includes('NEUTRAL'));
    await until('a is active', () => a.states.at(-1) === 'ACTIVE');
    expect(a.calls).toEqual(['becomeActive', 'enterNeutralMode', 'becomeActive']);
    await a.leave();
  });

  inArena('H8: who fails to become active gives the seat to another', async ({ arena, expect }) => {
    let failures = 0;
    const a = await join(arena, 'a', {
      becomeActive() {
        failures += 1;
        throw new Error('cannot');
      },
    });
    await until('it has failed', () => failures > 0);
    const b = await join(arena, 'b');
    await until('b is active', () => b.states.at(-1) === 'ACTIVE');
    await a.leave();
    await b.leave();
    expect(a.states).not.toContain('ACTIVE');
  });

  inArena(
    'H10, HB6: who fails to become standby leaves its breadcrumb, and not its lock',
    async ({ arena, expect }) => {
      // A term that is lost, on a machine that stands still, would end in another way.
      const client = await arena.client(15_000);
      const member = {
        becomeStandby() {
          throw new Error('cannot');
        },
      };
      const a = await join(arena, 'a', member, { client });
      await until('a is active', () => a.states.at(-1) === 'ACTIVE');
      await a.leave();
      expect(arena.data(lockPath)).toBeUndefined();
      expect(arena.data(breadcrumbPath)).toBe('a');
    },
  );

  inArena(
    'H18: who is unhealthy does not join, and who becomes so is no longer active',
    async ({ arena, expect }) => {
      let healthy = false;
      const member = await arena.member('a');
      const told: string[] = [];
      const stop = new AbortController();
      const ended = background(
        activeStandby(
          member.election,
          {
            becomeActive: () => void told.push('active'),
            becomeStandby: () => void told.push('standby'),
            enterNeutralMode: () => void told.push('neutral'),
          },
          { signal: stop.signal, health: { check: () => healthy, every: 20 } },
        ),
      );
      const b = await join(arena, 'b');
      await until('b is active', () => b.states.at(-1) === 'ACTIVE');
      await until('a is standby', () => told.at(-1) === 'standby');
      await b.leave();
      expect(arena.data(lockPath)).toBeUndefined();
      healthy = true;
      await until('a is active', () => told.at(-1) === 'active');
      healthy = false;
      await until('it is no longer', () => told.at(-1) === 'standby');
      await until('its lock is gone', () => arena.data(lockPath) === undefined);
      stop.abort(new Error('leave'));
      await ended.catch(() => {});
    },
  );
});
