import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports that systems give to outgoing connections (Linux from 32768, others from 49152).
// Any connection may take a port of that range while a server is down. Worse, a client that retries
// a closed port there can connect to itself, and then keeps the server from coming back.
const firstPort = 10_000;
const lastPort = 32_000;
const maxTries = 200;

const given = new Set<number>();

/** Ports on which no server listens on `host`; never the same twice in this process. */
export async function freePorts(count: number, host = '127.0.0.1'): Promise<number[]> {
  const ports: number[] = [];
  for (let tries = 0; ports.length < count; tries += 1) {
    if (tries === maxTries + count) throw new Error(`no free port on ${host} in ${tries} tries`);
    const port = randomInt(firstPort, lastPort);
    if (given.has(port) || !(await isFree(port, host))) continue;
    given.add(port);
    ports.push(port);
  }
  return ports;
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
