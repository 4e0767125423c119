import type { Socket } from 'node:net';
import type { Address } from '../net/connection.ts';
import { openSocket } from '../net/connection.ts';
import { onAbort } from '../on-abort.ts';
import { pause } from '../pause.ts';
import { Hosts } from './hosts.ts';
import type { SessionOptions } from './session-options.ts';
import type { SessionTiming } from './timing.ts';
import { attemptMs } from './timing.ts';

/** The longest pause between two rounds of questions. */
const maxPauseMs = 10_000;

/**
 * Asks all servers, round after round, whether one of them has a quorum (the four-letter word
 * `isro`). A server that does not allow the word counts as one without. Never rejects.
 * @returns true as soon as a server has one; false when `stop` aborts
 */
export async function findReadWriteServer(
  options: Pick<SessionOptions, 'hosts' | 'tls' | 'clock' | 'random'>,
  timing: SessionTiming,
  stop: AbortSignal,
): Promise<boolean> {
  const hosts = new Hosts(options.hosts, options.random);
  for (let pauseMs = 100; !stop.aborted; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    const addresses = hosts.literal() ?? (await hosts.resolve(stop, () => {}));
    for (const address of addresses) {
      const boundMs = attemptMs(timing, { hosts: addresses.length });
      const answer = await ask(address, options, boundMs, stop);
      if (stop.aborted) return false;
      if (answer === 'rw') return true;
    }
    await pause(options.clock, pauseMs * (0.75 + 0.25 * options.random()), stop);
  }
  return false;
}

function ask(
  address: Address,
  { tls, clock }: Pick<SessionOptions, 'tls' | 'clock'>,
  boundMs: number,
  stop: AbortSignal,
): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    let socket: Socket | undefined;
    const finish = () => {
      timer.cancel();
      stopListening();
      socket?.destroy();
      resolve(answer);
    };
    const timer = clock.setTimer(finish, boundMs);
    const stopListening = onAbort(stop, finish);
    try {
      [socket] = openSocket(address, tls, () => socket?.write('isro'));
    } catch {
      finish(); // It is asked again in the next round.
      return;
    }
    socket.on('data', (chunk: Uint8Array) => {
      answer += new TextDecoder('latin1').decode(chunk);
      if (answer.length >= 2) finish();
    });
    socket.on('error', finish);
    socket.on('close', finish);
  });
}
