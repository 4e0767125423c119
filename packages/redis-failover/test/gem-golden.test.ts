/** Our znodes, compared with those that the Ruby gem writes: see `golden/gem/make.sh`. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Nodes, Report } from '../src/layout.ts';
import {
  anyReplica,
  decodeNodes,
  decodeReport,
  encodeNodes,
  encodeReport,
  pathsBelow,
} from '../src/layout.ts';
import { rubyFloat } from '../src/ruby-float.ts';

function golden(name: string): string {
  return readFileSync(new URL(`golden/gem/${name}.txt`, import.meta.url), 'utf8');
}

const [a, b, c] = ['10.0.0.7:6379', '10.0.0.8:6379', '10.0.0.9:6380'];

const nodes: Readonly<Record<string, Nodes>> = {
  nodes: { master: a, slaves: [b, c], unavailable: [] },
  'nodes-one-down': { master: b, slaves: [c], unavailable: [a] },
  'nodes-without-primary': { master: null, slaves: [b], unavailable: [a] },
  'nodes-alone': { master: 'localhost:6379', slaves: [], unavailable: [] },
  'nodes-all-down': {
    master: null,
    slaves: [],
    unavailable: ['redis-1.example.com:6379', 'redis-2.example.com:6379'],
  },
};

const reports: Readonly<Record<string, Report>> = {
  report: { available: { [a]: 0.000412, [b]: 0.012 }, unavailable: [] },
  'report-one-down': { available: { [b]: 0.000412 }, unavailable: [a] },
  'report-all-down': { available: {}, unavailable: [a, b] },
  'report-nothing-seen': { available: {}, unavailable: [] },
  'report-latencies': {
    available: { 'a:1': 0.000091, 'b:1': 0.000001, 'c:1': 1 },
    unavailable: [],
  },
};

describe('nodes', () => {
  test.each(Object.entries(nodes))('%s is what the gem writes, byte for byte', (name, value) => {
    expect(encodeNodes(value)).toBe(golden(name));
    expect(decodeNodes('/redis_failover/nodes', golden(name))).toEqual(value);
  });

  test('the order of the keys is the gem’s, whatever ours is', () => {
    const value = { unavailable: [], slaves: [b, c], master: a };
    expect(encodeNodes(value)).toBe(golden('nodes'));
  });
});

describe('manager_node_state', () => {
  test.each(Object.entries(reports))('%s is what the gem writes, byte for byte', (name, value) => {
    expect(encodeReport(value)).toBe(golden(name));
    expect(decodeReport('/redis_failover/manager_node_state/m-1', golden(name))).toEqual(value);
  });

  test('whole numbers are read too', () => {
    expect(decodeReport('/r', golden('report-integers')).available).toEqual({ 'a:1': 0, 'b:1': 5 });
  });

  test.each([
    ['no JSON', '{"available":'],
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['no latencies', '{"available":["10.0.0.7:6379"],"unavailable":[]}'],
    ['an empty list for the available', '{"available":[],"unavailable":[]}'],
    ['what a version of the gem in development wrote', '{"available":{"a:1":{"lag":0}}}'],
    ['numbers for nodes', '{"available":{},"unavailable":[1]}'],
  ])('%s is refused with the path and what stands there', (_, text) => {
    const path = '/redis_failover/manager_node_state/m-1';
    expect(() => decodeReport(path, text)).toThrow(
      expect.objectContaining({
        code: 'LAYOUT',
        path,
        message: expect.stringContaining(JSON.stringify(text)),
      }),
    );
  });
});

test('every latency is written as Ruby does', () => {
  const texts = golden('floats').trimEnd().split('\n');
  expect(texts.length).toBeGreaterThan(200);
  expect(texts.map((text) => rubyFloat(Number(text)))).toEqual(texts);
});

test('the paths and the word for any replica are the gem’s', () => {
  expect(pathsBelow('/redis_failover')).toMatchObject({
    nodes: '/redis_failover/nodes',
    reports: '/redis_failover/manager_node_state',
    manualFailover: '/redis_failover/manual_failover',
  });
  expect(anyReplica).toBe('ANY_SLAVE');
});
