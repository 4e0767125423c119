// The suite that every server must pass, on the server that needs no installation.
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { behaviour } from '../test-integration/behaviour/suite.ts';

behaviour({
  name: 'FakeZooKeeper',
  capabilities: { tls: false, dynamicConfig: false },
  async open() {
    const fake = await FakeZooKeeper.start({
      minSessionTimeoutMs: 400,
      maxSessionTimeoutMs: 60_000,
    });
    return {
      url: fake.connectionString,
      port: fake.port,
      options: {},
      elapse: (ms) => Promise.resolve(fake.advance(ms)),
      close: () => fake.close(),
    };
  },
});
