import type { RoleChange } from './judge.ts';
import { Tail } from './tail.ts';

/** `MASTER MODE enabled (user request from 'id=7 … name=incumbent-redis:12:m1-1 …')`, `REPLICAOF …`. */
const change = /\* (MASTER MODE|REPLICAOF \S+) enabled \(user request from '.* name=(\S*) /;
const owner = /^incumbent-redis:(\d+):(.*?)(?::\d+)?$/;

/**
 * The changes of a Redis's role, in their order, with the name of the connection that made each:
 * its own log has them. (`MONITOR` does not show commands of administrators.)
 */
export class RoleWatch {
  readonly #port: number;
  readonly #log: Tail;

  constructor(port: number, logPath: string) {
    this.#port = port;
    this.#log = new Tail(logPath);
  }

  /** Those that came since. */
  *read(): Generator<RoleChange> {
    for (const line of this.#log.read()) {
      const found = parseRoleChange(this.#port, line);
      if (found !== undefined) yield found;
    }
  }

  close(): void {
    this.#log.close();
  }
}

/** @returns undefined for any other line, and for changes by who is no manager */
export function parseRoleChange(port: number, line: string): RoleChange | undefined {
  const [, command = '', name = ''] = change.exec(line) ?? [];
  const [, token, manager = ''] = owner.exec(name) ?? [];
  return token === undefined ? undefined : { port, token: BigInt(token), manager, command };
}
