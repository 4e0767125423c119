// A process that calls the leader, of the tests of incumbent/grpc. It runs the built code:
//
//     node grpc-process.mjs <grpc-js module> <directory of the elections> <election> <close | forget>
//
// It prints the answers as one line of JSON, with the handles that are still open. It must
// end by itself.
import { createRequire } from 'node:module';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { registerLeaderResolver } from 'incumbent/grpc';

const [moduleName, directory, name, ending] = process.argv.slice(2);
const grpc = createRequire(import.meta.url)(moduleName);
const election = createElection({ name, backend: file(directory), lease: '2s' });
const handle = registerLeaderResolver(grpc, { elections: election });

function read(client) {
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      '/test.Ledger/Read',
      (value) => Buffer.from(JSON.stringify(value)),
      (bytes) => JSON.parse(bytes.toString()),
      {},
      (error, value) => resolve(error?.details ?? value),
    );
  });
}

const answers = [];
const clients = [];
for (let i = 0; i < 5; i += 1) {
  const client = new grpc.Client(`incumbent:///${name}`, grpc.credentials.createInsecure());
  clients.push(client);
  answers.push(await read(client));
  // A second one, after the channel has asked for the store to be read again.
  answers.push(await read(client));
}
if (ending === 'close') {
  for (const client of clients) client.close();
  handle.close();
  await election.close();
  // A socket is closed in a later turn of the loop. One that is still open after so long is a leak.
  const until = Date.now() + 10_000;
  while (open().length > 0 && Date.now() < until) await new Promise(setImmediate);
}
process.stdout.write(JSON.stringify({ answers, open: ending === 'close' ? open() : [] }));

/** Without the pipes to the process that started us. */
function open() {
  return process.getActiveResourcesInfo().filter((kind) => !/^(PipeWrap|Immediate)$/.test(kind));
}
