import { formatDuration } from 'incumbent';
import type { OpenZooKeeper } from '../zookeeper/open.ts';
import type { EventLog } from './events.ts';
import { describe } from './events.ts';

/**
 * Tells how the connection fares on which all of `run` depends.
 * @returns stops telling
 */
export function followConnection(
  { client, askedTimeoutMs, askedBy }: OpenZooKeeper,
  events: EventLog,
): () => void {
  let timeoutMs = askedTimeoutMs;
  const judgeTimeout = () => {
    const given = client.session?.timeoutMs;
    if (given === undefined || given === timeoutMs) return;
    const message =
      `asked the servers for a session timeout of ${formatDuration(timeoutMs)} ` +
      `(${askedBy}) and got ${formatDuration(given)}: that is the lease`;
    events.emit({ event: 'warning', sentence: message, fields: { message } });
    timeoutMs = given;
  };
  judgeTimeout();
  return client.onState(({ state, previous, session, error }) => {
    const why = error === undefined ? '' : `: ${describe(error)}`;
    if (state === 'suspended') {
      events.emit({
        event: 'disconnected',
        sentence: `the connection to ZooKeeper is lost${why}; looking for a server`,
        fields: error === undefined ? {} : { error: describe(error) },
      });
    } else if (state === 'expired') {
      events.emit({
        event: 'session-expired',
        sentence: `the session with ZooKeeper has expired${why}; beginning another one`,
        fields: error === undefined ? {} : { error: describe(error) },
      });
    } else if (state === 'connected') {
      events.emit({
        event: 'connected',
        sentence: `${previous === 'expired' ? 'connected in a new session' : 'connected again'}, to ${session?.server}`,
        fields: { server: session?.server, newSession: previous === 'expired' },
      });
      judgeTimeout();
    } else if (state === 'auth-failed') {
      events.emit({
        event: 'auth-failed',
        sentence: `ZooKeeper does not take our credentials any more${why}`,
        fields: error === undefined ? {} : { error: describe(error) },
      });
    }
  });
}
