import { hostname } from 'node:os';
import type { NodeAddress } from '@incumbent/redis-failover';
import {
  formatNodeAddress,
  parseNodeAddress,
  pathsBelow,
  requestFailover,
} from '@incumbent/redis-failover/internal';
import { parseDuration } from 'incumbent';
import { span } from '../../output/span.ts';
import { toJson, visible } from '../../terminal/text.ts';
import type { FlagValues } from '../config/collect.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';
import { withZooKeeper } from '../look/connect.ts';
import { primaryOf } from '../look/judge.ts';
import { placeFrom } from '../look/set.ts';
import type { Znodes } from '../look/znodes.ts';
import { addressesOf, readZnodes } from '../look/znodes.ts';

interface FailoverFlags extends FlagValues {
  readonly timeout: string;
  readonly wait: string;
  readonly json?: true;
  readonly operands: readonly string[];
}

export function failover(flags: FailoverFlags, context: Context): Promise<number> {
  return ask(undefined, flags, context);
}

export function keep(flags: FailoverFlags, context: Context): Promise<number> {
  return ask('keep', flags, context);
}

export function discard(flags: FailoverFlags, context: Context): Promise<number> {
  return ask('discard', flags, context);
}

async function ask(
  action: 'keep' | 'discard' | undefined,
  flags: FailoverFlags,
  context: Context,
): Promise<number> {
  const [operand] = flags.operands;
  const node =
    operand === undefined ? null : formatNodeAddress(parseNodeAddress('the node', operand));
  const timeoutMs = parseDuration('--wait', flags.wait);
  const place = await placeFrom(flags, context);
  const paths = pathsBelow(place.root);
  const note = (text: string) => {
    if (!flags.json) context.stderr.write(`incumbent-redis: ${visible(text)}\n`);
  };
  return withZooKeeper(place, flags.timeout, context, async ({ zk, signal, takeTime }) => {
    const znodes = await readZnodes(zk, paths, signal);
    refuseFutile(node, action, znodes, place.root);
    if (znodes.leader === undefined)
      note(`no manager leads at the moment; waiting for ${flags.wait}`);
    takeTime();
    const startedAtMs = performance.now();
    const request = {
      node,
      action,
      requestedBy: `incumbent-redis on ${hostname()} (${process.pid})`,
    };
    const options = { signal: context.signal, timeoutMs, onProgress: note };
    const { primary, term } = await requestFailover(zk, paths, request, options).catch(
      (error: unknown) => {
        if (context.signal.aborted && error === context.signal.reason)
          note('the request was withdrawn');
        throw error;
      },
    );
    const tookMs = Math.round(performance.now() - startedAtMs);
    const former = primaryOf(znodes) ?? null;
    const done =
      action === 'discard'
        ? `${node} copies ${primary}`
        : `${primary} is the primary: term ${term}`;
    context.stdout.write(
      flags.json
        ? `${toJson({ primary, term, former, tookMs })}\n`
        : `${visible(done)} (took ${span(tookMs)})\n`,
    );
    return exitCodes.ok;
  });
}

/**
 * Refuses what every manager would refuse, before one is asked. Here the message can explain it in
 * full.
 */
function refuseFutile(
  node: NodeAddress | null,
  action: 'keep' | 'discard' | undefined,
  znodes: Znodes,
  root: string,
): void {
  const refuse = (code: string, message: string): never => {
    throw new CommandError(code, exitCodes.no, message);
  };
  const { record, leader, reports } = znodes;
  if (reports.size === 0 && leader === undefined) {
    refuse(
      'NO_MANAGER',
      `no manager runs with the root ${root}: start one (incumbent-redis manage)`,
    );
  }
  if (record === undefined && leader === undefined) {
    refuse(
      'NO_MANAGER',
      'the managers here are those of the Ruby gem: ask for a failover by its client, or start a ' +
        'manager of ours',
    );
  }
  if (node === null) return;
  const known = addressesOf(znodes);
  if (!known.includes(node)) {
    refuse('UNKNOWN_NODE', `${node} is none of the nodes here: ${known.join(', ')}`);
  }
  // A primary on record may be set aside.
  if (node === primaryOf(znodes) && action !== 'keep') {
    const term = record === undefined ? '' : ` (term ${record.term})`;
    refuse('ALREADY_PRIMARY', `${node} is the primary already${term}: name another node, or none`);
  }
}
