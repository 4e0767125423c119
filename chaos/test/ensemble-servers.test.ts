import type { TestEnsemble } from '@incumbent/zookeeper-testing';
import { expect, it } from 'vitest';
import { Servers } from '../src/ensemble/servers.ts';
import type { Network } from '../src/harness/network.ts';

type Told = 'struck' | 'down';

function three() {
  const members = [1, 2, 3].map((id) => ({ id, pid: 100 + id, state: 'running' }));
  const parted = new Set<unknown>();
  const told: Told[] = [];
  const servers = new Servers(
    { members } as unknown as TestEnsemble,
    { isParted: (member: unknown) => parted.has(member) } as unknown as Network,
    {
      struck: () => told.push('struck'),
      quorum: (state) => {
        if (state === 'down') told.push('down');
      },
    },
  );
  const look = (): Told[] => {
    servers.look();
    return told.splice(0);
  };
  expect(look()).toEqual([]);
  return { members, parted, look };
}

it('takes a server that is lost for a strike, and one that comes back for none', () => {
  const { members, look } = three();
  members[0]!.state = 'frozen';
  expect(look()).toEqual(['struck']);
  expect(look()).toEqual([]);
  members[0]!.state = 'running';
  expect(look()).toEqual([]);
  members[1]!.state = 'stopped';
  expect(look()).toEqual(['struck']);
  Object.assign(members[1]!, { state: 'running', pid: 202 });
  expect(look()).toEqual([]);
});

it('sees a server that was restarted between two looks', () => {
  const { members, look } = three();
  members[2]!.pid = 303;
  expect(look()).toEqual(['struck']);
  expect(look()).toEqual([]);
});

it('does not count on a server that runs and is parted from the others', () => {
  const { members, parted, look } = three();
  parted.add(members[0]);
  expect(look()).toEqual(['struck']);
  members[1]!.state = 'stopped';
  expect(look()).toEqual(['struck', 'down']);
  parted.clear();
  expect(look()).toEqual([]);
});
