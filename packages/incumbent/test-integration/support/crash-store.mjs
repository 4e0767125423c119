// The store of crash-service.mjs. The service uses it, and so does the process that gives a dead service's seat back.
const dist = (file) => new URL(`../../dist/backends/${file}/index.js`, import.meta.url).href;

/** @param at where the server is. A service may reach it by another way than its heir */
// biome-ignore lint/style/noDefaultExport: `releaseOnCrash` takes it
export default async function open(at = process.env.CRASH_STORE) {
  const [kind, address, ttl] = at.split('|');
  const backends = await import(dist(kind));
  if (kind === 'file') return backends.file(address);
  if (kind === 'postgres') {
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({ connectionString: address });
    pool.on('error', () => {});
    return backends.postgres(pool, { durable: true });
  }
  if (kind === 'redis') {
    const { createClient } = await import('redis');
    const client = createClient({ url: address });
    client.on('error', () => {});
    return backends.redis(await client.connect(), { durable: true });
  }
  if (kind === 'etcd') {
    const { Client, credentials } = await import('@grpc/grpc-js');
    const client = new Client(address, credentials.createInsecure());
    return backends.etcd(client, { ttl: Number(ttl), electionTimeout: 100 });
  }
  const { connect } = await import('../../../zookeeper/dist/index.js');
  return backends.zookeeper(await connect(address, { sessionTimeoutMs: Number(ttl) }));
}
