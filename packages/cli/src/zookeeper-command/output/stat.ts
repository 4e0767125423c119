import type { Stat } from '@incumbent/zookeeper';
import { columns } from '../../terminal/table.ts';
import { ago, isoTime, localTime } from '../../terminal/time.ts';

export function hex(id: bigint): string {
  return `0x${BigInt.asUintN(64, id).toString(16)}`;
}

/** For JSON: times in ISO 8601; bigints are written as strings by `toJson`. */
export function statToJson(stat: Stat): object {
  return { ...stat, ctime: isoTime(stat.ctime), mtime: isoTime(stat.mtime) };
}

/** Lines of `name  value`. */
export function statLines(stat: Stat, nowUnixMs: number): string[] {
  const time = (unixMs: number) => `${localTime(unixMs)} (${ago(unixMs, nowUnixMs)})`;
  return columns([
    ['czxid', hex(stat.czxid)],
    ['ctime', time(stat.ctime)],
    ['mzxid', hex(stat.mzxid)],
    ['mtime', time(stat.mtime)],
    ['pzxid', hex(stat.pzxid)],
    ['version', String(stat.version)],
    ['cversion', String(stat.cversion)],
    ['aversion', String(stat.aversion)],
    ['ephemeralOwner', stat.ephemeralOwner === 0n ? 'none' : hex(stat.ephemeralOwner)],
    ['dataLength', `${stat.dataLength} ${stat.dataLength === 1 ? 'byte' : 'bytes'}`],
    ['numChildren', String(stat.numChildren)],
  ]);
}

/** Columns of fixed widths, so that a listing can be printed as it comes; the name stands last. */
export const statHeader: string = `${row('VERSION', 'CHILDREN', 'BYTES', 'MODIFIED', 'OWNER')}NAME`;

export function statRow(stat: Stat, name: string): string {
  const owner = stat.ephemeralOwner === 0n ? '-' : hex(stat.ephemeralOwner);
  const { version, numChildren, dataLength, mtime } = stat;
  const cells = [version, numChildren, dataLength].map(String) as [string, string, string];
  return `${row(...cells, localTime(mtime), owner)}${name}`;
}

function row(version: string, children: string, bytes: string, time: string, owner: string) {
  const numbers = `${version.padStart(7)}  ${children.padStart(8)}  ${bytes.padStart(8)}`;
  return `${numbers}  ${time.padEnd(19)}  ${owner.padEnd(18)}  `;
}
