import type { TestMember } from '@incumbent/zookeeper-testing';
import { startEnsemble } from '@incumbent/zookeeper-testing';
import { describeElections } from './support/zookeeper-conformance.ts';

describeElections('an ensemble of three', async () => {
  const ensemble = await startEnsemble(3, { tickTimeMs: 200 });
  const { connectionString, members } = ensemble;
  return { connectionString, target: members[1] as TestMember, close: () => ensemble.close() };
});
