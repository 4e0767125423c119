/** The events of a manager, as lines of a log. No secret is ever in an event. */

import type { ManagerEvent, NodeAddress, NodeSight } from '@incumbent/redis-failover';
import type { Logger } from 'pino';
import { pino } from 'pino';
import { span } from '../../output/span.ts';
import { visible } from '../../terminal/text.ts';
import type { LogSink } from '../context.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFormat = 'json' | 'pretty';

interface LogLine {
  readonly level: LogLevel;
  /** For people, without a full stop. */
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** @param manager the id, in every line */
export function openLogger(
  sink: LogSink,
  { level, format, manager }: { level: LogLevel; format: LogFormat; manager: string },
): Logger {
  return pino(
    {
      level,
      base: { manager },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Tokens are bigints, which JSON does not have.
      serializers: { token: String },
    },
    { write: (line) => sink.write(format === 'json' ? line : prettyLine(line)) },
  );
}

export class EventLog {
  readonly #logger: Logger;
  /** The latest state of each node, because a change of only the latency is no news. */
  readonly #seen: Map<NodeAddress, NodeSight> = new Map();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  tell(event: ManagerEvent): void {
    const { level, message, fields } = this.#lineOf(event);
    this.#logger[level]({ event: event.type, ...fields }, message);
  }

  #lineOf(event: ManagerEvent): LogLine {
    if (event.type !== 'sight') return lineOf(event);
    const { sight } = event;
    const before = this.#seen.get(sight.address);
    this.#seen.set(sight.address, sight);
    const isNews = before?.state !== sight.state || before.failures !== sight.failures;
    const line = sightLine(sight);
    return isNews ? line : { ...line, level: 'debug' };
  }
}

function lineOf(event: ManagerEvent): LogLine {
  switch (event.type) {
    case 'started': {
      const { nodes } = event;
      return { level: 'info', message: `watching ${nodes.join(', ')}`, fields: { nodes } };
    }
    case 'stopped':
      return { level: 'info', message: 'stopped' };
    case 'zookeeper': {
      const { state } = event;
      const level = state === 'connected' ? 'info' : 'warn';
      return { level, message: `ZooKeeper: ${state}`, fields: { state } };
    }
    case 'elected': {
      const { token } = event;
      return { level: 'info', message: `elected (token ${token})`, fields: { token } };
    }
    case 'ousted': {
      const { token, reason } = event;
      const message = `leads no more: ${reason} (token ${token})`;
      return { level: 'info', message, fields: { token, reason } };
    }
    case 'sight':
      return sightLine(event.sight);
    case 'judged': {
      const { node, state, availableTo, unavailableTo } = event;
      const managers = availableTo + unavailableTo;
      const message =
        state === 'available'
          ? `${node} is up: ${availableTo} of ${managers} managers reach it`
          : `${node} is down: ${unavailableTo} of ${managers} managers do not reach it`;
      const fields = { node, state, availableTo, unavailableTo };
      return { level: state === 'available' ? 'info' : 'warn', message, fields };
    }
    case 'step': {
      const { step, node, afterMs } = event;
      const message = `moving the primary: ${step}${node === null ? '' : ` ${node}`}`;
      return { level: 'info', message, fields: { step, node, afterMs: Math.round(afterMs) } };
    }
    case 'primary': {
      const { primary, term } = event;
      const message =
        primary === null
          ? 'nobody is the primary: it moves'
          : `the primary is ${primary} (term ${term})`;
      return { level: 'info', message, fields: { primary, term } };
    }
    case 'moved': {
      const { from, to, term, reason, tookMs } = event;
      const whence = from === null ? '' : ` after ${from}`;
      const message = `${to} is the primary${whence}: term ${term}, took ${span(tookMs)}`;
      const fields = { from, to, term, reason, tookMs: Math.round(tookMs) };
      return { level: 'warn', message, fields };
    }
    case 'move-failed': {
      const { reason, error } = event;
      const message = `the primary could not be moved: ${error.message}`;
      return { level: 'error', message, fields: { reason, ...errorFields(error) } };
    }
    case 'reconciled': {
      const { node, primary } = event;
      return {
        level: 'info',
        message: `${node} now follows ${primary}`,
        fields: { node, primary },
      };
    }
    case 'quarantined': {
      const { node, primary, stream, offset, missing } = event;
      const message =
        `${node} is set aside with its data: ${primary} lacks what it has (${missing}). An operator ` +
        'decides: incumbent-redis status';
      return { level: 'error', message, fields: { node, primary, stream, offset, missing } };
    }
    case 'config-not-kept': {
      const { node, error } = event;
      const message = `CONFIG REWRITE failed on ${node}, so a restart may give it its old role: ${error.message}`;
      return { level: 'info', message, fields: { node, ...errorFields(error) } };
    }
    case 'fenced': {
      const { node, connections } = event;
      const what = connections === 1 ? 'a connection' : `${connections} connections`;
      const message = `closed ${what} of earlier managers on ${node}`;
      return { level: 'info', message, fields: { node, connections } };
    }
    case 'trouble': {
      const { code, message } = event.trouble;
      return { level: 'error', message, fields: { code } };
    }
    case 'recovered':
      return { level: 'info', message: 'all is well again' };
    default:
      return event satisfies never;
  }
}

function sightLine({ address, state, latencyMs, failures, error }: NodeSight): LogLine {
  const fields = {
    node: address,
    state,
    failures,
    ...(latencyMs === undefined ? {} : { latencyMs: Math.round(latencyMs * 100) / 100 }),
    ...(error === undefined ? {} : errorFields(error)),
  };
  if (state === 'unavailable') {
    const why = error === undefined ? '' : `: ${error.message}`;
    return { level: 'warn', message: `${address} is unavailable from here${why}`, fields };
  }
  if (error !== undefined) {
    const times = failures > 1 ? ` (failure ${failures} in a row)` : '';
    return { level: 'warn', message: `${error.message}${times}`, fields };
  }
  if (state === 'unknown') return { level: 'debug', message: `looking at ${address}`, fields };
  const latency = latencyMs === undefined ? '' : ` in ${span(latencyMs)}`;
  return { level: 'info', message: `${address} answers${latency}`, fields };
}

function errorFields(error: Error): Readonly<Record<string, unknown>> {
  return { error: error.message, ...('code' in error ? { errorCode: String(error.code) } : {}) };
}

/**
 * `2030-05-01T06:00:00.000Z WARN 10.0.0.7:6379 is down: …`. The message says the same as the
 * fields.
 */
function prettyLine(line: string): string {
  const { level, time, msg } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  return `${visible(`${time} ${String(level).toUpperCase().padEnd(5)} ${msg}`)}\n`;
}
