/** The file system that has a directory, for people who ask why a file store is slow or full. */
import { readFile, realpath, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Finding } from './finding.ts';

/** Less than this, and the next full log takes the election with it. */
const fewBytes = 16 * 1024 * 1024;
const fewFiles = 200;

export interface FileSystemFacts {
  /** `ext4`; undefined where this machine does not say. */
  readonly type: string | undefined;
  readonly freeBytes: number;
  /** How many more files there can be; undefined where the file system sets no bound. */
  readonly freeFiles: number | undefined;
}

export async function readFileSystem(directory: string): Promise<FileSystemFacts> {
  const [{ bavail, bsize, files, ffree }, path] = await Promise.all([
    statfs(directory),
    realpath(directory),
  ]);
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  return {
    type: mountedType(mounts, path),
    freeBytes: bavail * bsize,
    freeFiles: files === 0 ? undefined : ffree,
  };
}

/** The type of the file system that has this directory, or will have it once it is made. */
export async function fileSystemType(directory: string): Promise<string | undefined> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  for (let path = directory; mounts !== ''; path = dirname(path)) {
    const real = await realpath(path).catch(() => undefined);
    if (real !== undefined) return mountedType(mounts, real);
    if (dirname(path) === path) break;
  }
  return undefined;
}

/**
 * @param mountinfo see proc(5); the last mount on a path hides those before it
 */
export function mountedType(mountinfo: string, path: string): string | undefined {
  let longest = 0;
  let type: string | undefined;
  for (const line of mountinfo.split('\n')) {
    const match = /^\S+ \S+ \S+ \S+ (\S+) .*? - (\S+) /.exec(line);
    if (match?.[1] === undefined) continue;
    const point = match[1].replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const within = point === '/' ? '/' : `${point}/`;
    if (!`${path}/`.startsWith(within) || within.length < longest) continue;
    longest = within.length;
    type = match[2];
  }
  return type;
}

export function fileSystemFindings({ type, freeBytes, freeFiles }: FileSystemFacts): Finding[] {
  const findings: Finding[] = [
    {
      check: 'file-system',
      level: 'note',
      message: type ?? 'type not known',
      data: { type: type ?? null },
    },
    ...fileSystemWarnings(type),
  ];
  const few = freeBytes < fewBytes || (freeFiles !== undefined && freeFiles < fewFiles);
  const files = freeFiles === undefined ? '' : `, ${freeFiles} more files`;
  findings.push({
    check: 'free-space',
    level: few ? 'warn' : 'ok',
    message: `${formatBytes(freeBytes)} free${files}${few ? ': make room, a full disk ends terms' : ''}`,
    data: { freeBytes, freeFiles: freeFiles ?? null },
  });
  return findings;
}

/** Warnings about file systems that keep no election, or none that other machines see. */
export function fileSystemWarnings(type: string | undefined): Finding[] {
  const findings: Finding[] = [];
  if (type === 'tmpfs' || type === 'ramfs') {
    findings.push({
      check: 'file-system',
      level: 'warn',
      message: `${type} is empty after every boot: tokens begin at 1 again, and a resource that remembers higher ones refuses them`,
    });
  }
  if (type === 'overlay') {
    findings.push({
      check: 'file-system',
      level: 'warn',
      message:
        'overlay is usually the inside of one container, which other containers do not see: ' +
        'mount a directory that all candidates share',
    });
  }
  return findings;
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
