/**
 * The settings of a service config for calls while there is no leader. grpc-js itself does
 * not apply them.
 */
import type { Client } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { candidate, FakeElection, ledBy, vacant } from '../test/support/fake-election.ts';
import { read, versions } from './support/grpc-ledger.ts';
import { eventually, GrpcStage } from './support/grpc-stage.ts';

const nobody = (name: string) => `nobody leads election "${name}" at the moment`;
const configOf = (...methodConfig: readonly object[]) => JSON.stringify({ methodConfig });
const retryPolicy = {
  maxAttempts: 2,
  initialBackoff: '0.01s',
  maxBackoff: '0.01s',
  backoffMultiplier: 1,
  retryableStatusCodes: ['UNAVAILABLE'],
};
const everywhere = { name: [{}], waitForReady: true };

describe.concurrent.each(versions)('a service config on grpc-js %s', (_version, grpc) => {
  const { DEADLINE_EXCEEDED, UNAVAILABLE } = grpc.status;

  test.for([
    ['everything', everywhere],
    ['the service', { name: [{ service: 'test.Ledger' }], waitForReady: true }],
    ['the method', { name: [{ service: 'test.Ledger', method: 'Read' }], waitForReady: true }],
  ] as const)('makes calls wait for a leader: of %s', async ([what, config], context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection(`waits: ${what}`);
    const a = await stage.server('a');
    stage.resolve({ [fake.name]: fake.election });
    const client = stage.client(`incumbent:///${encodeURIComponent(fake.name)}`, {
      'grpc.service_config': configOf(config),
    });
    fake.show(vacant(1n));
    const waiting = read(grpc, client);
    // Later than the other one was asked, and answered: that one waits.
    const impatient = await read(grpc, client, { waitForReady: false });
    expect(impatient.status).toMatchObject({ code: UNAVAILABLE, details: nobody(fake.name) });
    fake.show(ledBy(candidate('a', { addresses: [a.address] }), 2n));
    expect((await waiting).value).toBe('a');
  });

  test('makes calls wait for a leader that cannot be reached to be replaced', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('waits-unreachable');
    const [gone, b] = [await stage.server('gone'), await stage.server('b')];
    await gone.close();
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`, {
      'grpc.service_config': configOf(everywhere),
    });
    fake.show(ledBy(candidate('gone', { addresses: [gone.address] }), 1n));
    const waiting = read(grpc, client);
    const impatient = await read(grpc, client, { waitForReady: false });
    expect(impatient.status.details).toMatch(/^No connection established/);
    fake.show(ledBy(candidate('b', { addresses: [b.address] }), 2n));
    expect((await waiting).value).toBe('b');
  });

  test('leaves calls alone that it says nothing of, or the contrary', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('waits-not');
    stage.resolve(fake.election);
    fake.show(vacant(1n));
    const failing = { code: UNAVAILABLE, details: nobody(fake.name) };
    const other = { name: [{ service: 'test.Ledger', method: 'Talk' }], waitForReady: true };
    const never = { name: [{ service: 'test.Ledger' }], waitForReady: false };
    for (const config of [configOf(other), configOf(everywhere, never), configOf(never, other)]) {
      const client = stage.client(`incumbent:///${fake.name}`, { 'grpc.service_config': config });
      expect((await read(grpc, client)).status).toMatchObject(failing);
    }
  });

  test('lets nothing wait longer than the deadline or its own timeout', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('waits-bounded');
    stage.resolve(fake.election);
    fake.show(vacant(1n));
    const target = `incumbent:///${fake.name}`;
    const client = stage.client(target, { 'grpc.service_config': configOf(everywhere) });
    const metadata = new grpc.Metadata();
    const late = await read(grpc, client, { deadlineMs: 150, metadata });
    expect(late.status.code).toBe(DEADLINE_EXCEEDED);
    expect(metadata.getOptions(), "the caller's own stays as it is").toEqual({});
    const bounded = stage.client(target, {
      'grpc.service_config': configOf({ ...everywhere, timeout: '0.15s' }),
    });
    const tooLate = await read(grpc, bounded, { deadlineMs: 3_600_000 });
    expect(tooLate.status.code).toBe(DEADLINE_EXCEEDED);
  });

  test('counts when a leader has published it, and channels share connections as before', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('waits-published');
    const a = await stage.server('a', (call, reply) => reply(null, call.getPeer()));
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`);
    const leader = (connectionParameters: string) =>
      candidate('a', { addresses: [a.address], metadata: { connectionParameters } });
    fake.show(ledBy(leader('{}'), 1n));
    fake.show(ledBy(leader(configOf({ ...everywhere, timeout: '3600s' })), 1n));
    const first = (await read(grpc, client, { waitForReady: true })).value;
    const second = stage.client(`incumbent:///${fake.name}`);
    expect((await read(grpc, second)).value, 'by the same connection').toBe(first);
    fake.show(vacant(1n));
    await eventually(async () => {
      const { status } = await read(grpc, client, { waitForReady: false });
      expect(status.details).toBe(nobody(fake.name));
    });
    const waiting = read(grpc, client);
    const impatient = await read(grpc, client, { waitForReady: false });
    expect(impatient.status.code).toBe(UNAVAILABLE);
    fake.show(ledBy(leader('{}'), 2n));
    expect((await waiting).value).toMatch(/^127\.0\.0\.1:/);
  });

  test('a call that was not sent says so, and how often it was tried before', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('not-sent');
    const gone = await stage.server('gone');
    await gone.close();
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`);
    const retrying = stage.client(`incumbent:///${fake.name}`, {
      'grpc.service_config': configOf({ name: [{}], retryPolicy }),
    });
    const tellsOf = async (each: Client) => {
      const { metadata } = (await read(grpc, each)).status;
      return [metadata.get('incumbent-refused'), metadata.get('grpc-previous-rpc-attempts')];
    };
    fake.show(vacant(1n));
    expect(await tellsOf(retrying)).toEqual([['no-leader'], ['1']]);
    expect(await tellsOf(client)).toEqual([['no-leader'], []]);
    fake.show(ledBy(candidate('gone', { addresses: [gone.address] }), 2n));
    await eventually(async () => {
      expect(await tellsOf(retrying)).toEqual([['unreachable'], ['1']]);
    });
    expect(await tellsOf(client)).toEqual([['unreachable'], []]);
  });

  test('a call whose connection broke does not say that it was not sent', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('broken-off');
    const a = await stage.server('a', () => {
      void a.close();
    });
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`);
    fake.show(ledBy(candidate('a', { addresses: [a.address] }), 1n));
    const { code, metadata } = (await read(grpc, client, { waitForReady: true })).status;
    expect(code).not.toBe(grpc.status.OK);
    expect(metadata.get('incumbent-refused')).toEqual([]);
  });
});
