/** A stand-in for an object store, so that its work is not in ours. */
import { FakeGcs, FakeS3 } from '@incumbent/servers';
import { serve } from '../../calls/serve.ts';
import type { ObjectServerMethods, RequestCount } from '../messages.ts';
import { nameIn } from '../user-agent.ts';

interface Logged {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Of the stand-in: a log for tests, which is emptied whenever somebody asks. */
let log: Logged[] = [];

serve<ObjectServerMethods>({
  async open({ store }) {
    const server = store === 's3' ? await FakeS3.start() : await FakeGcs.start();
    log = server.requests as Logged[];
    return { url: server.url };
  },
  requests() {
    const counts = new Map<string, RequestCount>();
    for (const { method, headers } of log.splice(0)) {
      const who = nameIn(headers['user-agent'] ?? '');
      const isWrite = method !== 'GET' && method !== 'HEAD';
      const key = `${who} ${isWrite}`;
      counts.set(key, { who, isWrite, count: (counts.get(key)?.count ?? 0) + 1 });
    }
    return { counts: [...counts.values()] };
  },
});
