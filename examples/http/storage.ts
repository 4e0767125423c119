/**
 * Where orders are kept: takes them only from the leader of the service, by its token.
 *
 *     PORT=8090 node examples/dist/http/storage.js
 */
import express from 'express';
import { requireToken, tokenOf } from 'incumbent/http';

const { PORT = '8090' } = process.env;
const orders = new Map<string, { item: string; token: string }>();

const app = express();
// The highest token is kept with the orders: here in memory, else in their database.
app.put(
  '/orders/:id',
  requireToken({ election: 'orders' }),
  express.json(),
  (request, response) => {
    const { id } = request.params as { id: string };
    const token = String(tokenOf(request, 'orders'));
    if (!orders.has(id)) orders.set(id, { item: request.body.item, token }); // once, however often
    response.status(204).end();
  },
);
app.get('/orders', (_request, response) => {
  response.json([...orders.values()]);
});
const server = app.listen(Number(PORT), '127.0.0.1');
process.once('SIGTERM', () => server.close());
