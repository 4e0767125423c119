import type { Client } from './client.ts';
import type { Command } from './commands.ts';
import { findCommand } from './commands.ts';
import { ErrorReply, said } from './reply.ts';
import type { Server } from './server.ts';
import { entryOf } from './stream.ts';

/** One command of a client, through the checks of `processCommand` of server.c, in their order. */
export function execute(server: Server, client: Client, parts: readonly string[]): void {
  const name = nameOf(parts);
  client.lastCommand = name;
  const refuse = (error: ErrorReply) => {
    if (client.transaction !== undefined) client.transaction.isBroken = true;
    if (name === 'exec') client.transaction = undefined;
    client.answer(error);
  };
  const command = findCommand(name);
  if (command === undefined || parts.length < command.leastParts) {
    refuse(command === undefined ? unknownCommand(parts) : wrongNumber(name));
    return;
  }
  const whole = withWhatIsQueued(client, command, name);
  const refusal = refusalOf(server, client, whole);
  if (refusal !== undefined) {
    refuse(refusal);
    return;
  }
  const { pauses } = server;
  const isReplica = client.replica !== undefined;
  if (!isReplica && (pauses.all || (pauses.writes && whole.mayReplicate))) {
    client.blocked = { by: 'pause', parts };
    pauses.postponed.push(client);
    return;
  }
  if (client.transaction !== undefined && !command.runsInTransaction) {
    if (command.isNoTransaction) {
      refuse(new ErrorReply('ERR Command not allowed inside a transaction'));
      return;
    }
    client.transaction.commands.push(parts);
    client.answer('QUEUED');
    return;
  }
  call(server, client, command, parts);
}

function call(server: Server, client: Client, command: Command, parts: readonly string[]): void {
  const propagated: (readonly string[])[] = [];
  const propagate = (changed: readonly string[]) => propagated.push(changed);
  const reply = command.run({ server, client, parts, isInTransaction: false, propagate });
  if (propagated.length > 0) server.feed(entryOf(propagated));
  client.writtenOffset = server.history.offset;
  if (reply !== undefined) client.answer(reply);
  server.askForAcknowledgements();
}

function refusalOf(server: Server, client: Client, command: Checked): ErrorReply | undefined {
  const { settings, upstream, downstream, loading } = server;
  const wantsPassword = settings.text('requirepass') !== '';
  if (wantsPassword && !client.isAuthenticated && !command.needsNoAuth) return said.noAuth;
  const wanted = settings.count('min-replicas-to-write');
  const isChecked = wanted > 0 && settings.count('min-replicas-max-lag') > 0;
  const lacksReplicas = upstream === undefined && isChecked && downstream.goodCount < wanted;
  if (command.isWrite && lacksReplicas) return said.noReplicas;
  const isReadOnly = upstream !== undefined && settings.isOn('replica-read-only');
  if (command.isWrite && isReadOnly) return said.readOnly;
  const isStale = upstream !== undefined && !upstream.isConnected;
  const servesStale = settings.isOn('replica-serve-stale-data') || command.runsStale;
  if (isStale && !servesStale) return said.masterDown;
  if (loading === 'only' && !command.runsWhileLoading) return said.loading;
  if (loading === 'beside' && !command.runsBesideLoading) return said.loading;
  return undefined;
}

type Checked = Omit<Command, 'run' | 'apply' | 'leastParts'>;

/** EXEC is what was queued for it. */
function withWhatIsQueued({ transaction }: Client, command: Command, name: string): Checked {
  if (name !== 'exec' || transaction === undefined) return command;
  const queued = transaction.commands.map((parts) => findCommand(nameOf(parts)) as Command);
  return {
    ...command,
    isWrite: queued.some(({ isWrite }) => isWrite),
    mayReplicate: queued.some(({ mayReplicate }) => mayReplicate),
    runsStale: queued.every(({ runsStale }) => runsStale),
    runsWhileLoading: queued.every(({ runsWhileLoading }) => runsWhileLoading),
    runsBesideLoading: queued.every(({ runsBesideLoading }) => runsBesideLoading),
  };
}

function nameOf(parts: readonly string[]): string {
  return (parts[0] ?? '').toLowerCase();
}

function unknownCommand(parts: readonly string[]): ErrorReply {
  const args = parts.slice(1).map((part) => `'${part}' `);
  return new ErrorReply(
    `ERR unknown command '${parts[0]}', with args beginning with: ${args.join('')}`,
  );
}

function wrongNumber(name: string): ErrorReply {
  return new ErrorReply(`ERR wrong number of arguments for '${name}' command`);
}
