/**
 * The behaviour that users of the client can rely on: one suite for every kind of server. Each test
 * works in a folder of its own and closes its clients.
 */
import { describe } from 'vitest';
import { access } from './access.ts';
import { calls } from './calls.ts';
import { helpers } from './helpers.ts';
import { nodes } from './nodes.ts';
import { oneShotWatches } from './one-shot-watches.ts';
import { persistentWatches } from './persistent-watches.ts';
import { sessions } from './sessions.ts';
import { transactions } from './transactions.ts';
import type { Target } from './world.ts';
import { World } from './world.ts';

/** Registers the suite for one kind of server. */
export function behaviour(target: Target): void {
  describe(target.name, () => {
    const world = new World(target);
    world.begin();
    describe('nodes', () => nodes(world));
    describe('access', () => access(world));
    describe('transactions', () => transactions(world));
    describe('one-shot watches', () => oneShotWatches(world));
    describe('persistent watches', () => persistentWatches(world));
    describe('sessions', () => sessions(world));
    describe('calls', () => calls(world));
    describe('helpers', () => helpers(world));
  });
}
