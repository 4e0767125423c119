import { toLeader } from 'incumbent/http';
import type { Dispatcher } from 'undici';
import { Agent, fetch } from 'undici';
import { addressFor } from '../addresses.ts';
import type { Answer, Question } from '../calls.ts';
import type { Caller, OpenWay } from './way.ts';

/** How long an entry may take before the next one is asked, as a part of the whole call. */
const entryPart = 0.3;

/** By the dispatcher; and by services that are not the leader, which redirect or forward. */
export function openHttpWays({ election, callMs, entries }: Caller): OpenWay[] {
  const byEntry = (name: string, path: string): OpenWay => {
    const agent = new Agent({ connections: 1 });
    let turn = 0;
    return {
      name,
      connectsTo: 'services',
      async call(question) {
        turn += 1;
        const start = turn;
        let last: unknown;
        // As a load balancer does: who does not answer, or cannot serve, is passed over.
        for (let i = 0; i < entries.length; i += 1) {
          const origin = entries[(start + i) % entries.length];
          try {
            return await post(`${origin}${path}`, question, agent, entryPart * callMs);
          } catch (error) {
            last = error;
          }
        }
        throw last;
      },
      close: () => agent.close(),
    };
  };
  const agent = new Agent({ connections: 1 });
  const interceptor = toLeader(election, { addressOf: addressFor('http') });
  const dispatcher = agent.compose(interceptor);
  return [
    {
      name: 'HTTP, to the leader',
      connectsTo: 'services',
      call: (question) => post('http://leader/refuse/call', question, dispatcher, callMs),
      async close() {
        interceptor.close();
        await agent.close();
      },
    },
    byEntry('HTTP, redirected', '/redirect/call'),
    byEntry('HTTP, forwarded', '/proxy/call'),
  ];
}

async function post(
  url: string,
  question: Question,
  dispatcher: Dispatcher,
  withinMs: number,
): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
    dispatcher,
    signal: AbortSignal.timeout(withinMs),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text.slice(0, 200)}`);
  return JSON.parse(text) as Answer;
}
