/** The store of a program that a test starts: `kind` names it, `where` is its address. */
export async function openBackend(kind, where, lease) {
  if (kind === 'file') {
    const { file } = await import('incumbent/file');
    return { backend: file(where), close: async () => {} };
  }
  if (kind === 'postgres') {
    const { postgres } = await import('incumbent/postgres');
    const { default: pg } = await import('pg');
    const client = new pg.Pool({ connectionString: where });
    return { backend: postgres(client, { clockStep: 0 }), close: () => client.end() };
  }
  if (kind === 'zookeeper') {
    const { zookeeper } = await import('incumbent/zookeeper');
    const { connect } = await import('@incumbent/zookeeper');
    const client = await connect(where, { sessionTimeoutMs: milliseconds(lease) });
    return { backend: zookeeper(client), close: () => client.close() };
  }
  if (kind === 'etcd') {
    const { etcd } = await import('incumbent/etcd');
    const { Client, credentials } = await import('@grpc/grpc-js');
    const client = new Client(where, credentials.createInsecure());
    return { backend: etcd(client, { ttl: lease }), close: async () => client.close() };
  }
  const { redis } = await import('incumbent/redis');
  const { createClient } = await import('redis');
  const client = createClient({ url: where });
  await client.connect();
  return { backend: redis(client), close: () => client.close() };
}

/** Their lease is that of the session. */
export const hasSessions = (kind) => kind === 'etcd' || kind === 'zookeeper';

const milliseconds = (lease) => 1_000 * Number.parseFloat(lease);
