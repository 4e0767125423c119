// Starts a server, freezes it, says its process id, and ends in the way it was told.
import { startServer } from '../dist/index.js';

const server = await startServer();
await server.freeze();
process.stdout.write(`${JSON.stringify({ pid: server.pid })}\n`);
const how = process.argv[2];
if (how === 'exit') process.exit(0);
if (how === 'throw') throw new Error('on purpose');
// Otherwise it is killed from outside.
