import { connect } from '@incumbent/zookeeper';
import { createElection } from 'incumbent';
import type { ZooKeeperOptions } from 'incumbent/zookeeper';
import { zookeeper } from 'incumbent/zookeeper';
import type { OpenCandidate } from './candidate.ts';

/** `incumbent/zookeeper`, with its defaults unless `options` says otherwise. */
export function ours(options: ZooKeeperOptions = {}): OpenCandidate {
  return async (port, sessionTimeoutMs) => {
    const client = await connect(`zk://127.0.0.1:${port}`, { sessionTimeoutMs });
    const backend = zookeeper(client, options);
    return {
      async campaign(name) {
        // Another handle each time: one that has resigned stands aside for a second.
        const election = createElection({ name, backend });
        const term = await election.campaign();
        return {
          token: term.token.toString(),
          async resign() {
            // There is no work to settle.
            await term[Symbol.asyncDispose]();
            await election.close();
          },
        };
      },
    };
  };
}
