import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:http';
import express from 'express';
import { leaderOnly } from 'incumbent/http';
import { addressFor } from '../addresses.ts';
import type { Question } from '../calls.ts';
import type { Server, Service } from './server.ts';

/** The ways of a follower with a request, a path for each. */
const modes = ['redirect', 'proxy', 'refuse'] as const;

export async function serveHttp(
  { election, term, serve, checks }: Service,
  port: number,
): Promise<Server> {
  const app = express();
  const addressOf = addressFor('http');
  const gates = checks
    ? modes.map((followers) => leaderOnly({ election, term, followers, addressOf }))
    : [];
  for (const [index, followers] of modes.entries()) {
    const gate = gates[index];
    if (gate !== undefined) app.use(`/${followers}`, gate);
    app.post(`/${followers}/call`, async (request, response) => {
      // The effect comes before the body, in the same turn as the check.
      const answer = serve();
      const { number } = JSON.parse(await bodyOf(request)) as Question;
      response.json({ ...answer, number });
    });
  }
  // Connections between services that nobody uses are closed before the end is waited for.
  const server = createServer({ keepAliveTimeout: 1_000 }, app);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    async close() {
      for (const gate of gates) gate.close();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
