import { fileURLToPath } from 'node:url';
import { Remote } from '../calls/remote.ts';
import type { Surroundings } from '../surroundings.ts';
import type { Admin } from './admin.ts';
import type { CandidateName, ClientMethods } from './messages.ts';
import type { Peers } from './peers.ts';
import type { Column, Results } from './results.ts';

export type Client = Remote<ClientMethods>;

/** Shared by all scenarios of a run. */
export interface Stage {
  readonly surroundings: Surroundings;
  readonly peers: Peers;
  readonly results: Results;
  readonly admin: Admin;
  /** Of the real server. */
  readonly serverPort: number;
  /** Notes what could not be measured. */
  failed(benchmark: string, column: Column, error: unknown): void;
}

export interface Scenario {
  /** For `--only`. */
  readonly name: string;
  readonly about: string;
  /** Creates the nodes that it needs. */
  prepare?(): Promise<void>;
  /** One round: leaves no process behind. */
  round(round: number): Promise<void>;
}

export type MakeScenario = (stage: Stage) => Scenario;

/** A node of 100 bytes. */
export const smallNode = '/bench';

const pythonClient = fileURLToPath(new URL('../../zookeeper/kazoo_client.py', import.meta.url));

/** A process of that candidate, or of none. */
export function startClient(
  { surroundings, peers }: Stage,
  column: Column,
  nodeOptions: readonly string[] = [],
): Client {
  const file = fileURLToPath(new URL('./workers/client.js', import.meta.url));
  const command =
    column === 'kazoo'
      ? [peers.python ?? 'python3', pythonClient]
      : [process.execPath, ...nodeOptions, file, column === 'empty' ? 'none' : column];
  return new Remote<ClientMethods>(surroundings, column, command);
}

/** Those who are there, another one first in each round. */
export function candidatesOf(
  { peers }: Stage,
  names: readonly CandidateName[],
  round: number,
): readonly CandidateName[] {
  return rotated(
    names.filter((name) => !peers.absent.has(name)),
    round,
  );
}

function rotated<T>(items: readonly T[], by: number): readonly T[] {
  const first = by % Math.max(1, items.length);
  return [...items.slice(first), ...items.slice(0, first)];
}

/** Runs `measure` with a process for each candidate at a time, and ends them all. */
export async function withClients(
  stage: Stage,
  benchmark: string,
  names: readonly CandidateName[],
  connect: { readonly port: number; readonly sessionTimeoutMs: number },
  measure: (clients: ReadonlyMap<CandidateName, Client>) => Promise<void>,
): Promise<void> {
  const clients = new Map<CandidateName, Client>();
  const all: Client[] = [];
  try {
    for (const name of names) {
      const client = startClient(stage, name);
      all.push(client);
      try {
        await client.call('connect', { ...connect, auth: false }, 20_000);
        clients.set(name, client);
      } catch (error) {
        stage.failed(benchmark, name, error);
      }
    }
    await measure(clients);
  } finally {
    await Promise.all(all.map((client) => client.kill()));
  }
}

/** Each round measures everybody so often in turn: what disturbs one moment is not one's alone. */
const slices = 3;

/** @param measure is given a moment that is the same for all candidates of a slice */
export async function inSlices(
  stage: Stage,
  benchmark: string,
  round: number,
  clients: ReadonlyMap<CandidateName, Client>,
  measure: (name: CandidateName, client: Client, moment: number, first: boolean) => Promise<void>,
): Promise<void> {
  let taking = [...clients];
  for (let slice = 0; slice < slices; slice += 1) {
    const failed = await eachInTurn(stage, benchmark, rotated(taking, slice), (name, client) =>
      measure(name, client, round * slices + slice, slice === 0),
    );
    taking = taking.filter(([name]) => !failed.has(name));
  }
}

/**
 * Runs it for each in turn; what fails with one does not keep the others from being measured.
 * @returns those with whom it failed
 */
export async function eachInTurn<T extends Column, V>(
  stage: Stage,
  benchmark: string,
  entries: Iterable<readonly [T, V]>,
  measure: (column: T, value: V) => Promise<void>,
): Promise<ReadonlySet<T>> {
  const failed = new Set<T>();
  for (const [column, value] of entries) {
    try {
      await measure(column, value);
    } catch (error) {
      failed.add(column);
      stage.failed(benchmark, column, error);
    }
  }
  return failed;
}
