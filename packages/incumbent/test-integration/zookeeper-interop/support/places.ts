import type { TestServer } from '@incumbent/zookeeper-testing';
import type { ZooKeeper } from '../../../../zookeeper/src/index.ts';

/** A child of the election's node, as it is on the server. */
export interface PlaceOnServer {
  readonly name: string;
  readonly sequence: number;
  readonly data: string;
  readonly czxid: bigint;
  readonly session: bigint;
  readonly acl: unknown;
}

/** All children whose names end in a number, in its order. */
export async function placesOf(client: ZooKeeper, path: string): Promise<PlaceOnServer[]> {
  await client.sync(path);
  const { children } = await client.getChildren(path);
  const places = await Promise.all(
    children
      .filter((name) => /\d{10}$/.test(name))
      .map(async (name) => {
        const { text, stat } = await client.get(`${path}/${name}`);
        const { acl } = await client.getAcl(`${path}/${name}`);
        const sequence = Number(name.slice(-10));
        const { czxid, ephemeralOwner } = stat;
        return { name, sequence, data: text, czxid, session: ephemeralOwner, acl };
      }),
  );
  return places.sort((a, b) => a.sequence - b.sequence);
}

/** The sessions that watch a node or its children, of all sessions of the server. */
export async function watchersOf(server: TestServer, path: string): Promise<bigint[]> {
  const answer = await server.fourLetterWord('wchp');
  const watchers: bigint[] = [];
  let current = '';
  for (const line of answer.split('\n')) {
    if (line.startsWith('/')) current = line.trim();
    else if (current === path && line.trim() !== '') watchers.push(BigInt(line.trim()));
  }
  return watchers;
}
