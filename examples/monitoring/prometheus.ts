/**
 * A service whose elections Prometheus watches. Start it as often as you like.
 *
 *     PORT=9101 ELECTIONS=/tmp/elections node examples/dist/monitoring/prometheus.js
 */
import { createServer } from 'node:http';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { collectMetrics } from 'incumbent/metrics';
import { register } from 'prom-client';

const { PORT = '9101', ELECTIONS = '.', LEASE = '15s' } = process.env;
const metrics = collectMetrics(register); // before the first campaign

const server = createServer((_request, response) => {
  response.setHeader('content-type', register.contentType);
  register.metrics().then(
    (text) => response.end(text),
    (error: Error) => response.destroy(error),
  );
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`http://127.0.0.1:${PORT}/metrics`));

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
const election = createElection({ name: 'orders', backend: file(ELECTIONS), lease: LEASE });
try {
  await election.lead(
    async (term) => {
      console.log(`leading with token ${term.token}`);
      await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
    },
    { signal: stop.signal },
  );
} catch (error) {
  if (!stop.signal.aborted) throw error;
}
await election.close();
metrics.close();
server.close();
