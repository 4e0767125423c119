/** SQLite: Node's own module where it is there, else a package with the same API. */
import { CommandError, exitCodes } from '../failure.ts';
import { requireInstalled } from '../installed.ts';

const packageName = '@photostructure/sqlite';

export type SqlValue = string | number | null;
export type Row = Readonly<Record<string, SqlValue>>;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint };
  get(...values: SqlValue[]): Row | undefined;
  all(...values: SqlValue[]): Row[];
}

export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export interface Sqlite {
  readonly DatabaseSync: new (
    path: string,
    options: { readonly readOnly?: boolean; readonly timeout?: number },
  ) => Database;
}

type BuiltIns = (name: 'node:sqlite') => Sqlite | undefined;

/**
 * @param builtIns undefined in releases of Node that cannot tell
 * @throws CommandError that says how to install the package
 */
export function loadSqlite(
  cwd: string,
  builtIns: BuiltIns | undefined = (process as { readonly getBuiltinModule?: BuiltIns })
    .getBuiltinModule,
  beside: string = import.meta.url,
): Sqlite {
  const sqlite =
    (builtIns === undefined ? undefined : silently(() => builtIns('node:sqlite'))) ??
    requireInstalled(packageName, cwd, beside);
  if (sqlite !== undefined) return sqlite as Sqlite;
  const [major = ''] = process.versions.node.split('.');
  // The second version of the package wants Node 22.
  const version = Number(major) < 22 ? '@1' : '';
  throw new CommandError(
    'DRIVER_MISSING',
    exitCodes.usage,
    `a history needs SQLite, which Node has from 22.13 on. For Node ${process.versions.node}, the package ` +
      `${packageName} is neither in ${cwd} nor beside this command: npm install ${packageName}${version}`,
  );
}

/** Node warns that its module is experimental: nobody can do anything about that here. */
function silently<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** The primary result codes of SQLite that we tell apart. */
const resultCodes = { busy: 5, cannotOpen: 14, notADatabase: 26 } as const;

export function isResult(error: unknown, which: keyof typeof resultCodes): boolean {
  const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) : Number.NaN;
  // The upper bits say more about it.
  return (code & 0xff) === resultCodes[which];
}
