// The sections of the site, and the order of their pages.
const page = (text, link) => ({ text, link });

export const sidebar = [
  {
    text: 'Start',
    items: [
      page('In five minutes', '/start/'),
      page('All at a glance', '/repository/README'),
      page('The library', '/repository/packages/incumbent/README'),
    ],
  },
  {
    text: 'Guides',
    items: [
      page('Cron that runs once', '/guides/cron-that-runs-once'),
      page('A scheduler for a job queue', '/guides/job-queue-scheduler'),
      page('A Kubernetes controller', '/guides/kubernetes-controller'),
      page('Requests that reach the leader', '/guides/requests-to-the-leader'),
      page('A gRPC service with a leader', '/guides/grpc-service'),
    ],
  },
  {
    text: 'Stores',
    items: [
      page('Which store', '/stores/'),
      page('PostgreSQL', '/stores/postgres'),
      page('Redis', '/stores/redis'),
      page('etcd', '/stores/etcd'),
      page('Kubernetes', '/stores/kubernetes'),
      {
        text: 'ZooKeeper',
        link: '/stores/zookeeper',
        collapsed: true,
        items: [
          page('Elections of others', '/stores/zookeeper-layouts'),
          page('Elections of Hadoop', '/stores/zookeeper-hadoop'),
        ],
      },
      page('Google Cloud Storage', '/stores/gcs'),
      page('S3', '/stores/s3'),
    ],
  },
  {
    text: 'Reference',
    items: [
      {
        text: 'Commands',
        collapsed: true,
        items: [
          page('incumbent', '/reference/cli'),
          page('incumbent: every option', '/reference/commands/incumbent'),
          page('incumbent-zk', '/reference/zookeeper-cli'),
          page('incumbent-zk: its help', '/reference/commands/incumbent-zk'),
          page('incumbent-redis: its help', '/reference/commands/incumbent-redis'),
        ],
      },
      {
        text: 'API',
        link: '/reference/api/',
        collapsed: true,
        items: [
          page('incumbent', '/reference/api/incumbent'),
          ...[
            'postgres',
            'redis',
            'etcd',
            'kubernetes',
            'zookeeper',
            'gcs',
            's3',
            'file',
            'memory',
            'grpc',
            'http',
            'backend',
            'testing',
          ].map((name) => page(`incumbent/${name}`, `/reference/api/incumbent/${name}`)),
          page('@incumbent/zookeeper', '/reference/api/@incumbent/zookeeper'),
          page('@incumbent/zookeeper-testing', '/reference/api/@incumbent/zookeeper-testing'),
          page('@incumbent/redis-failover', '/reference/api/@incumbent/redis-failover'),
        ],
      },
      page('Following over gRPC', '/reference/grpc'),
      page('Following over HTTP', '/reference/http'),
      page('The ZooKeeper client', '/repository/packages/zookeeper/README'),
      page('ZooKeeper for tests', '/repository/packages/zookeeper-testing/README'),
      page('Failover of Redis', '/reference/redis-failover'),
      page('Failover of Redis: clients', '/reference/redis-failover-client'),
    ],
  },
  {
    text: 'Design',
    collapsed: true,
    items: [
      page('How leaders change', '/design/hand-over'),
      page('Architecture', '/repository/ARCHITECTURE'),
      page('The ZooKeeper client', '/repository/packages/zookeeper/ARCHITECTURE'),
      page('The failover of Redis', '/repository/packages/redis-failover/ARCHITECTURE'),
    ],
  },
  {
    text: 'Evidence',
    collapsed: true,
    items: [
      page('How it is tested', '/evidence/testing'),
      page('Findings', '/evidence/findings'),
      page('Simulation', '/repository/simulation/README'),
      page('Chaos', '/repository/chaos/README'),
      {
        text: 'Benchmarks',
        link: '/evidence/benchmarks',
        collapsed: true,
        items: [
          page('On the stores', '/evidence/benchmarks-stores'),
          page('On ZooKeeper', '/evidence/benchmarks-zookeeper-elections'),
          page('Following the leader', '/evidence/benchmarks-following'),
          page('Failover of Redis', '/evidence/benchmarks-redis-failover'),
          page('The ZooKeeper client', '/evidence/benchmarks-zookeeper'),
        ],
      },
      page('Cut off from the quorum', '/evidence/zookeeper-safety'),
      page('ZooKeeper clients compared', '/evidence/zookeeper-features'),
    ],
  },
  {
    text: 'Coming from',
    collapsed: true,
    items: [page('Another election', '/coming-from/')],
  },
];
