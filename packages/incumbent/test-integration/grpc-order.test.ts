/** Channels that were made too early: alone in a file, as gRPC takes no scheme back. */
import { expect, test } from 'vitest';
import { candidate, FakeElection, ledBy } from '../test/support/fake-election.ts';
import { read, versions } from './support/grpc-ledger.ts';
import { GrpcStage } from './support/grpc-stage.ts';

test.for(versions)(
  'a channel made before the resolver stays with DNS (%s)',
  async ([, grpc], context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('early');
    const a = await stage.server('a');
    const target = `incumbent:///${fake.name}`;
    const early = stage.client(target);
    stage.resolve(fake.election);
    fake.show(ledBy(candidate('a', { addresses: [a.address] }), 1n));
    expect((await read(grpc, stage.client(target), { waitForReady: true })).value).toBe('a');
    expect((await read(grpc, early)).status).toMatchObject({
      code: grpc.status.UNAVAILABLE,
      details: `Failed to parse DNS address dns:${target}`,
    });
    expect(() => stage.client('incumbent:///other')).toThrow(/other names no election/);
    expect(() => stage.client('incumbent://other')).toThrow(/other names no election/);
  },
);
