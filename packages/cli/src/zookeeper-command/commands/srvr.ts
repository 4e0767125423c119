import { askFourLetterWord } from '@incumbent/zookeeper';
import { formatHost } from '@incumbent/zookeeper/internal';
import type { Paint, Tone } from '../../terminal/style.ts';
import { painter } from '../../terminal/style.ts';
import { columns } from '../../terminal/table.ts';
import { toJson, visible } from '../../terminal/text.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { targetOf } from '../session.ts';

/** A server's report on itself. */
export interface ServerReport {
  readonly server: string;
  /** `leader`, `follower`, `standalone` …; undefined: it does not serve. */
  readonly mode: string | undefined;
  readonly version: string | undefined;
  readonly connections: number | undefined;
  readonly outstanding: number | undefined;
  readonly nodes: number | undefined;
  /** Least, mean and most, in ms. */
  readonly latencyMs: readonly [number, number, number] | undefined;
  /** As the server writes it, in hexadecimal. */
  readonly zxid: string | undefined;
  /** Why there is no mode. */
  readonly error: string | undefined;
}

export async function srvr(args: Arguments, context: Context): Promise<number> {
  const { parsed, timeoutMs, tls } = await targetOf(args, context.env);
  const { json, signal } = context;
  const reports = await Promise.all(
    parsed.hosts.map(async (host) => {
      const server = formatHost(host);
      const options = { tls: parsed.tls ? (tls ?? {}) : undefined, timeoutMs, signal };
      try {
        return readReport(server, await askFourLetterWord(host, 'srvr', options));
      } catch (error) {
        signal.throwIfAborted();
        return readReport(server, '', (error as Error).message);
      }
    }),
  );
  const lines = json
    ? reports.map((report) => toJson(Object.fromEntries(Object.entries(report).map(orNull))))
    : textLines(reports, painter(context.stdout, context.env));
  for (const line of lines) await context.print(`${line}\n`);
  const isAnyServing = reports.some(({ mode }) => mode !== undefined);
  return isAnyServing ? exitCodes.ok : exitCodes.unavailable;
}

/** Reads an answer to `srvr`. */
export function readReport(server: string, answer: string, error?: string): ServerReport {
  const field = (name: string) => new RegExp(`^${name}: *(.+)$`, 'm').exec(answer)?.[1]?.trim();
  const number = (name: string) => {
    const text = field(name);
    return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
  };
  const latency = field('Latency min/avg/max')?.split('/').map(Number);
  const mode = field('Mode');
  const firstLine = answer.trim().split('\n')[0] ?? '';
  return {
    server,
    mode,
    version: field('Zookeeper version')?.split(/[-,]/)[0],
    connections: number('Connections'),
    outstanding: number('Outstanding'),
    nodes: number('Node count'),
    latencyMs: latency?.length === 3 ? (latency as [number, number, number]) : undefined,
    zxid: field('Zxid'),
    error: mode === undefined ? (error ?? (firstLine || 'it answers nothing')) : undefined,
  };
}

function orNull([name, value]: [string, unknown]): [string, unknown] {
  return [name, value ?? null];
}

const titles = [
  ...['SERVER', 'MODE', 'VERSION', 'CONNECTIONS', 'OUTSTANDING', 'NODES'],
  ...['LATENCY min/avg/max', 'ZXID'],
];

function textLines(reports: readonly ServerReport[], paint: Paint): string[] {
  const shown = (value: string | number | undefined) =>
    value === undefined ? '-' : visible(String(value));
  const rows = reports.map((report) => [
    report.server,
    report.mode === undefined ? 'unavailable' : visible(report.mode),
    ...[report.version, report.connections, report.outstanding, report.nodes].map(shown),
    report.latencyMs === undefined ? '-' : `${report.latencyMs.join('/')} ms`,
    report.mode === undefined ? visible(report.error ?? '') : shown(report.zxid),
  ]);
  const [header = '', ...lines] = columns([titles, ...rows]);
  // Whole lines, so that colours do not count as width.
  return [
    paint('faint', header),
    ...lines.map((line, i) => paintLine(line, reports[i]?.mode, paint)),
  ];
}

function paintLine(line: string, mode: string | undefined, paint: Paint): string {
  const tone: Tone | undefined =
    mode === undefined
      ? 'bad'
      : mode === 'leader'
        ? 'good'
        : mode === 'read-only'
          ? 'warn'
          : undefined;
  return tone === undefined ? line : paint(tone, line);
}
