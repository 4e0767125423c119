// A candidate of the tests of seats, which is killed and frozen:
//
//   node seats-process.mjs <kind> <address> <id>
//
// As a leader it writes lines to its output: seat, token, and a time in ms of the clock that all
// processes of a machine share. At that time it has begun to ask whether it leads, and it does.
import { createElection } from 'incumbent';

const [kind, address, id] = process.argv.slice(2);

const open = {
  async file() {
    const { file } = await import('incumbent/file');
    return file(address);
  },
  async postgres() {
    const { postgres } = await import('incumbent/postgres');
    const { default: pg } = await import('pg');
    return postgres(new pg.Pool({ connectionString: address }).on('error', () => {}));
  },
  async redis() {
    const { redis } = await import('incumbent/redis');
    const { createClient } = await import('redis');
    return redis(
      await createClient({ url: address })
        .on('error', () => {})
        .connect(),
    );
  },
  async etcd() {
    const { etcd } = await import('incumbent/etcd');
    const { Client, credentials } = await import('@grpc/grpc-js');
    return etcd(new Client(address, credentials.createInsecure()), { ttl: '4s' });
  },
  async zookeeper() {
    const { zookeeper } = await import('incumbent/zookeeper');
    const { connect } = await import('@incumbent/zookeeper');
    return zookeeper(await connect(address, { sessionTimeoutMs: 4_000 }));
  },
};

const lease = kind === 'etcd' || kind === 'zookeeper' ? {} : { lease: '3s' };
const election = createElection({
  ...{ name: 'jobs', backend: await open[kind](), seats: 3, candidate: { id }, ...lease },
  onTrouble: () => {},
});
const now = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
await election.lead(
  (term) =>
    new Promise((resolve) => {
      const beat = () => {
        const at = now();
        if (term.isLeading()) process.stdout.write(`${term.seat} ${term.token} ${at}\n`);
      };
      const timer = setInterval(beat, 20);
      beat();
      term.signal.addEventListener('abort', () => {
        clearInterval(timer);
        resolve();
      });
    }),
);
