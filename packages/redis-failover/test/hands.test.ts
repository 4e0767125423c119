import type { Term } from 'incumbent';
import { expect, it } from 'vitest';
import { Hands } from '../src/manager/hands.ts';
import type { NodeLink, OpenNode } from '../src/redis/node-connection.ts';
import { replication } from './support/replication.ts';

it('a node that may be another name of one that is held is looked at, and no connection is closed there', async () => {
  const sent: string[] = [];
  const names: (string | undefined)[] = [];
  let isOpen = true;
  const openNode: OpenNode = async (_, { name }) => {
    names.push(name);
    const link: Pick<NodeLink, 'isOpen' | 'command' | 'replication' | 'close'> = {
      get isOpen() {
        return isOpen;
      },
      command: async (parts) => sent.push(parts.join(' ')),
      replication: async () => replication(),
      close: () => {
        isOpen = false;
      },
    };
    return link as NodeLink;
  };
  const term = { token: 7n, signal: new AbortController().signal, assertLeading: () => {} };
  const settings = { id: 'm', access: {}, nodeTimeoutMs: 100, hooks: {}, tell: () => {}, openNode };
  const hands = new Hands(settings as never, term as unknown as Term);
  await hands.look('a:1');
  await hands.look('a:1');
  expect(sent).toEqual([]);
  expect(names).toEqual(['incumbent-redis-look:m']);
  hands[Symbol.dispose]();
  expect(isOpen).toBe(false);
  // Before changes they are.
  await hands.replication('a:1').catch(() => {});
  expect(sent).toContain('CLIENT LIST');
});
