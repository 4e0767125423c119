import { createHash } from 'node:crypto';

/** Replies as both sides give them. */
export type Value = string | number | null | readonly Value[];

/** Sends a command. Rejects with what the server says. */
export type Send = (parts: readonly string[]) => Promise<Value>;

/** The INFO of a node, and its data. */
export type Observation = Readonly<Record<string, string>>;

/** Without those that tell of time, memory and numbers of connections. */
const compared: readonly RegExp[] = [
  /^(redis_mode|run_id|tcp_port|loading|async_loading|role|blocked_clients)$/,
  /^(rdb_bgsave_in_progress|aof_enabled|aof_rewrite_in_progress)$/,
  /^(master_host|master_port|master_link_status|master_sync_in_progress)$/,
  /^(slave_read_repl_offset|slave_repl_offset|slave_priority|slave_read_only)$/,
  /^(connected_slaves|min_slaves_good_slaves|master_replid|master_replid2)$/,
  /^(master_repl_offset|second_repl_offset|repl_backlog_active|repl_backlog_size)$/,
  /^(sync_full|sync_partial_ok|sync_partial_err)$/,
  /^(repl_backlog_first_byte_offset|repl_backlog_histlen|db0)$/,
];

/** @param reports whether what replicas have reported is compared: they do it once a second */
export async function observe(send: Send, reports: boolean): Promise<Observation> {
  const info = String(await send(['INFO']));
  const fields: Record<string, string> = {};
  const replicas: string[] = [];
  for (const line of info.split('\r\n')) {
    const colon = line.indexOf(':');
    const [field, value] = [line.slice(0, colon), line.slice(colon + 1)];
    if (compared.some((pattern) => pattern.test(field))) fields[field] = value;
    if (field === 'master_link_down_since_seconds') fields['was_ever_up'] = `${value !== '-1'}`;
    if (/^slave\d+$/.test(field)) {
      const [, port, state, offset] = value.split(',');
      replicas.push([port, state, ...(reports ? [offset] : [])].join(','));
    }
  }
  fields['replicas'] = replicas.sort().join(' ');
  fields['ROLE'] = showRole((await send(['ROLE'])) as readonly Value[], reports);
  fields['DBSIZE'] = await said(send(['DBSIZE']));
  fields['data'] = await said(data(send));
  return fields;
}

async function data(send: Send): Promise<string> {
  const keys = ((await send(['KEYS', '*'])) as readonly string[]).toSorted();
  const values = keys.length === 0 ? [] : await send(['MGET', ...keys]);
  const digest = createHash('sha256')
    .update(JSON.stringify([keys, values]))
    .digest('hex');
  return digest.slice(0, 12);
}

function showRole(role: readonly Value[], reports: boolean): string {
  if (role[0] === 'master') {
    const replicas = (role[2] as readonly (readonly string[])[]).map(([host, port, offset]) =>
      [host, port, ...(reports ? [offset] : [])].join(' '),
    );
    return `${role[0]} ${role[1]} [${replicas.sort().join(', ')}]`;
  }
  // It tries again once a second, and for how long each attempt stands is not compared.
  const state = /^(connect|connecting|handshake)$/.test(String(role[3])) ? 'connects' : role[3];
  return [role[0], role[1], role[2], state, role[4]].join(' ');
}

/** The reply, or what went wrong, as text. */
export async function said(replying: Promise<Value>): Promise<string> {
  try {
    return JSON.stringify(await replying);
  } catch (error) {
    const { message } = error as Error;
    return `-${/^the connection/.test(message) ? 'the connection has ended' : message}`;
  }
}
