import type { Server } from './server.ts';

/** The text of INFO, with the fields that anybody here reads (`genRedisInfoString` of server.c). */
export function infoText(server: Server): string {
  const { served } = server.downstream;
  const sections = {
    Server: serverFields(server),
    Clients: clientFields(server),
    Persistence: persistenceFields(server),
    Stats: {
      sync_full: served.full,
      sync_partial_ok: served.partly,
      sync_partial_err: served.notPartly,
    },
    Replication: replicationFields(server),
    Keyspace: server.data.size === 0 ? {} : { db0: `keys=${server.data.size},expires=0,avg_ttl=0` },
  };
  return Object.entries(sections)
    .map(([name, fields]) => {
      const lines = Object.entries(fields).map(([field, value]) => `${field}:${value}\r\n`);
      return `# ${name}\r\n${lines.join('')}`;
    })
    .join('\r\n');
}

type Fields = Readonly<Record<string, string | number>>;

function serverFields({ runId, machine, nowMs, seconds, startedSeconds }: Server): Fields {
  return {
    redis_version: '7.0.15',
    redis_mode: 'standalone',
    run_id: runId,
    tcp_port: machine.port,
    server_time_usec: Math.floor(nowMs * 1_000),
    uptime_in_seconds: seconds - startedSeconds,
  };
}

function clientFields({ clients, upstream }: Server): Fields {
  const all = [...clients.values()];
  return {
    connected_clients: all.filter(({ replica }) => replica === undefined).length,
    // The connection from the primary is one of them.
    blocked_clients:
      all.filter(({ blocked }) => blocked !== undefined).length +
      (upstream?.isHeldUp === true ? 1 : 0),
  };
}

function persistenceFields(server: Server): Fields {
  const { loading, dirty, children, aof, lastSaveSeconds, saves } = server;
  return {
    loading: flag(loading === 'only'),
    async_loading: flag(loading === 'beside'),
    rdb_changes_since_last_save: dirty,
    rdb_bgsave_in_progress: flag(children.isSaving),
    rdb_last_save_time: lastSaveSeconds,
    rdb_saves: saves,
    aof_enabled: flag(aof.isEnabled),
    aof_rewrite_in_progress: flag(aof.isRewriting),
  };
}

function replicationFields(server: Server): Fields {
  const { upstream, downstream, history, backlog, settings, seconds } = server;
  const wantsReplicas =
    settings.count('min-replicas-to-write') > 0 && settings.count('min-replicas-max-lag') > 0;
  const replicas = downstream.attached.map(({ client, state, ackOffset, ackSeconds }, index) => {
    const lag = state === 'online' ? seconds - ackSeconds : 0;
    const fields = `state=${shown[state]},offset=${ackOffset},lag=${lag}`;
    return [`slave${index}`, `ip=${client.peer},port=${client.listeningPort},${fields}`] as const;
  });
  return {
    role: upstream === undefined ? 'master' : 'slave',
    ...(upstream === undefined ? {} : upstreamFields(server)),
    connected_slaves: downstream.attached.length,
    ...(wantsReplicas ? { min_slaves_good_slaves: downstream.goodCount } : {}),
    ...Object.fromEntries(replicas),
    master_failover_state: 'no-failover',
    master_replid: history.replId,
    master_replid2: history.replId2,
    master_repl_offset: history.offset,
    second_repl_offset: history.secondOffset,
    repl_backlog_active: flag(backlog !== undefined),
    repl_backlog_size: settings.text('repl-backlog-size'),
    repl_backlog_first_byte_offset: backlog?.firstOffset ?? 0,
    repl_backlog_histlen: backlog?.length ?? 0,
  };
}

const shown = {
  'wait-start': 'wait_bgsave',
  'wait-end': 'wait_bgsave',
  sending: 'send_bulk',
  online: 'online',
} as const;

function upstreamFields({ upstream, seconds, settings }: Server): Fields {
  if (upstream === undefined) return {};
  const { isConnected, downSinceSeconds } = upstream;
  return {
    master_host: upstream.host,
    master_port: upstream.port,
    master_link_status: isConnected ? 'up' : 'down',
    master_last_io_seconds_ago: isConnected ? seconds - upstream.lastHeardSeconds : -1,
    master_sync_in_progress: flag(upstream.state === 'transfer'),
    slave_read_repl_offset: upstream.readOffset,
    slave_repl_offset: upstream.offset,
    ...(isConnected
      ? {}
      : {
          master_link_down_since_seconds: downSinceSeconds === 0 ? -1 : seconds - downSinceSeconds,
        }),
    slave_priority: settings.text('replica-priority'),
    slave_read_only: flag(settings.isOn('replica-read-only')),
    replica_announced: 1,
  };
}

function flag(is: boolean): number {
  return is ? 1 : 0;
}
