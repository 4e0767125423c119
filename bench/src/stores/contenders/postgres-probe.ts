/** One row of one's own, for both drivers. */
export const readProbe = 'select record from bench_probe where name = $1';
export const writeProbe = 'update bench_probe set record = $2 where name = $1';

export const wakeProbe: string =
  'with written as (update bench_probe set record = $2 where name = $1 returning 1) ' +
  "select pg_notify($3, '') from written";

export function probeTable(name: string): string {
  return (
    // Two that make it at the same time would meet an error of the catalogues.
    "do $$ begin perform pg_advisory_xact_lock(hashtextextended('bench', 0)); " +
    'create table if not exists bench_probe (name text primary key, record text not null); ' +
    `insert into bench_probe values ('${name}', '') on conflict do nothing; end $$`
  );
}

export function urlOf(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}
