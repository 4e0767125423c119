import { expect, test } from 'vitest';
import { opcodes } from '../../src/protocol/constants.ts';
import { requests } from '../../src/protocol/requests.ts';

/** The numbers of a client's requests in the servers' sources. */
const numbers = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  multi: 14,
  create2: 15,
  reconfig: 16,
  checkWatches: 17,
  removeWatches: 18,
  createContainer: 19,
  createTtl: 21,
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  sasl: 102,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  closeSession: -11,
};

test('every request that a client may send is there, with its number', () => {
  const ours = Object.entries(requests).map(([key, { opcode }]) => [key, opcode]);
  expect(Object.fromEntries(ours)).toEqual(numbers);
});

test('every opcode that is no request of its own is one of four', () => {
  const others = Object.entries(opcodes).filter(([key]) => !(key in requests));
  // A notification, two that can only be part of a multi, and one that only servers send.
  expect(Object.fromEntries(others)).toEqual({
    notification: 0,
    check: 13,
    deleteContainer: 20,
    error: -1,
  });
});

test('a request is called what its key says, and no two share a number', () => {
  for (const [key, { name }] of Object.entries(requests)) expect(name).toBe(key);
  const used = Object.values(requests).map(({ opcode }) => opcode);
  expect(new Set(used).size).toBe(used.length);
});

test('a request that changes nodes, the session or its identities is not read-only', () => {
  const writes = Object.values(requests)
    .filter(({ readOnly }) => !readOnly)
    .map(({ name }) => name);
  expect(writes.sort()).toEqual(
    [
      ...['create', 'create2', 'createContainer', 'createTtl', 'delete', 'setData', 'setAcl'],
      ...['multi', 'reconfig', 'auth', 'sasl', 'closeSession'],
    ].sort(),
  );
});
