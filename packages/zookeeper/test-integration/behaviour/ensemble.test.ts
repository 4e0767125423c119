import { startEnsemble } from '@incumbent/zookeeper-testing';
import { behaviour } from './suite.ts';

behaviour({
  name: 'an ensemble of three',
  capabilities: { tls: false, dynamicConfig: true },
  async open() {
    const ensemble = await startEnsemble(3, {
      systemProperties: { 'znode.container.checkIntervalMs': 200 },
    });
    const [first] = ensemble.members;
    const [follower] = await ensemble.followers();
    if (first === undefined || follower === undefined) {
      throw new Error('an ensemble without members');
    }
    return {
      url: ensemble.connectionString,
      follower: `zk://127.0.0.1:${follower.port}`,
      port: first.port,
      options: {},
      elapse: () => Promise.resolve(),
      close: () => ensemble.close(),
    };
  },
});
