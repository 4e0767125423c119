/** Steering by the page: the commands do it, with their checks and in their words. */
import { drain } from '../commands/drain.ts';
import { end } from '../commands/end.ts';
import { init } from '../commands/init.ts';
import { transfer } from '../commands/transfer.ts';
import { vacate } from '../commands/vacate.ts';
import type { Context } from '../context.ts';
import { describeFailure } from '../failure.ts';
import type { ElectionQuestion } from '../options.ts';
import type { LiveValues } from '../web/live-values.ts';
import { ActionError } from '../web/page-server.ts';
import type { PageStore } from './page-store.ts';
import type { ShownElection, SteeringOf } from './shown.ts';
import { electionKey } from './shown.ts';

/**
 * @param stores by index
 * @returns the sentence of the command
 * @throws ActionError with the command's refusal
 */
export async function steer(
  steering: SteeringOf,
  stores: readonly Pick<PageStore, 'open'>[],
  timeout: string,
  context: Context,
): Promise<string> {
  let said = '';
  const hear = {
    write: (text: string | Uint8Array) => {
      said += String(text);
      return true;
    },
  };
  const store = stores[steering.store];
  if (store === undefined) throw new ActionError(`there is no store ${steering.store}`);
  const { open } = store;
  const options = { election: steering.election, timeout, operands: [] };
  try {
    await perform(steering, options, {
      ...context,
      ...{ stdout: hear, stderr: hear, openStore: async () => open },
    });
  } catch (error) {
    throw new ActionError(describeFailure(error).message);
  }
  return said.trim();
}

function perform(
  steering: SteeringOf,
  options: ElectionQuestion,
  context: Context,
): Promise<number> {
  switch (steering.act) {
    case 'vacate':
      return vacate({ ...options, ...(steering.force && { force: true }) }, context);
    case 'transfer':
      return transfer({ ...options, to: steering.to }, context);
    case 'drain':
      return drain({ ...options, id: steering.id, until: steering.until }, context);
    case 'lift':
      return drain({ ...options, id: steering.id, lift: true }, context);
    case 'end':
      return end(options, context);
    case 'reopen':
      return init({ ...options, reopen: true }, context);
    default:
      return steering satisfies never;
  }
}

/**
 * An operator who asks a leader to go means the one that was shown.
 * @throws ActionError when another one leads now
 */
export function requireShown(steering: SteeringOf, live: LiveValues): void {
  if (steering.act !== 'vacate' && steering.act !== 'transfer') return;
  const now = live.get(electionKey(steering)) as ShownElection | undefined;
  if (now === undefined || now.token === steering.token) return;
  throw new ActionError(
    `${now.leader?.id ?? 'nobody'} leads now (token ${now.token}), not the one that was shown: look again`,
  );
}

/** @throws ActionError for anything that is no request of ours */
export function readSteering(action: unknown, stores: number): SteeringOf {
  const { act, store, election, token, force, to, id, until } = Object(action) as Record<
    string,
    unknown
  >;
  const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
  const isStore = Number.isInteger(store) && Number(store) >= 0 && Number(store) < stores;
  if (isStore && isText(election) && (token === null || isText(token))) {
    const place = { store: Number(store), election, token };
    if (act === 'vacate' && typeof force === 'boolean') return { ...place, act, force };
    if (act === 'transfer' && isText(to)) return { ...place, act, to };
    if (act === 'drain' && isText(id) && isText(until)) return { ...place, act, id, until };
    if (act === 'lift' && isText(id)) return { ...place, act, id };
    if (act === 'end' || act === 'reopen') return { ...place, act };
  }
  throw new ActionError('this is no request that the dashboard knows');
}
