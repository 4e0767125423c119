'use strict';
// One POST, as a program of its own, so that the guard of `incumbent agent` can kill it. A request of
// the agent itself could leave late, after the agent was frozen and its belief was over.
//
//   node http-call.cjs URL
//
// Ends with 0 when the answer is a success.
const { request } = require('node:http');

const { INCUMBENT_ELECTION, INCUMBENT_CANDIDATE, INCUMBENT_TOKEN } = process.env;
const url = process.argv[2];
const fail = (why) => {
  process.stderr.write(`POST ${url}: ${why}\n`);
  process.exitCode = 1;
};
const headers = { 'content-type': 'application/json' };
const asked = request(url, { method: 'POST', headers, agent: false }, (response) => {
  response.resume();
  response.once('end', () => {
    if (response.statusCode < 200 || response.statusCode >= 300)
      fail(`status ${response.statusCode}`);
  });
});
asked.once('error', (error) => fail(error.message));
asked.end(
  JSON.stringify({
    election: INCUMBENT_ELECTION,
    candidate: INCUMBENT_CANDIDATE,
    token: INCUMBENT_TOKEN ?? null,
  }),
);
