import type { Backend } from 'incumbent';
import { createElection } from 'incumbent';
import type { Contender, Probe } from './contender.ts';

/** Elections of ours on a backend, with its defaults but for the lease. */
export function ours(
  backend: Backend,
  timing: { readonly lease?: number },
  probe?: Probe,
): Contender {
  return {
    async campaign(name) {
      // Another handle each time: one that has resigned stands aside for a second.
      const election = createElection({ name, backend, ...timing });
      const term = await election.campaign();
      return {
        token: term.token.toString(),
        isLeading: () => term.isLeading(),
        async resign() {
          // There is no work to settle.
          await term[Symbol.asyncDispose]();
          await election.close();
        },
        onEnd: (listener) => term.signal.addEventListener('abort', listener, { once: true }),
      };
    },
    ...(probe === undefined ? {} : { probe }),
  };
}
