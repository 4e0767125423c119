import type { TermActivity } from '@incumbent/cli/trial';
import { startServer } from '@incumbent/zookeeper-testing';
import { startEtcd } from '../index.ts';
import type { Venue } from './play.ts';
import type { Layout } from './program.ts';

/** A server on which elections of a layout are held. */
export interface Ground extends AsyncDisposable {
  /** @param path of the election */
  venue(path: string): Pick<Venue, 'server' | 'path' | 'bury'>;
}

export async function startGround(layout: Layout): Promise<Ground> {
  if (layout !== 'etcdctl') {
    const server = await startServer({ tickTimeMs: 200 });
    return {
      venue: (path) => ({ server, path }),
      [Symbol.asyncDispose]: () => server.close(),
    };
  }
  const server = await startEtcd();
  return {
    venue: (path) => ({
      server,
      path,
      // Its leases are for 60 s, and nothing makes them shorter: what their end does to others is
      // done at once.
      bury: async (struck: TermActivity) => {
        const words = ['get', `${path}/`, '--prefix', '--write-out=json'];
        const { kvs = [] } = JSON.parse(await server.etcdctl(...words)) as {
          readonly kvs?: readonly { readonly key: string; readonly create_revision: number }[];
        };
        const kv = kvs.find((each) => BigInt(each.create_revision) === struck.token);
        if (kv === undefined) return;
        const key = Buffer.from(kv.key, 'base64').toString();
        await server.etcdctl('lease', 'revoke', key.slice(path.length + 1));
      },
    }),
    [Symbol.asyncDispose]: () => server.close(),
  };
}
