'use strict';
// One POST, as a program of its own, so that the guard of `incumbent agent` can kill it. A request of
// the agent itself could leave late, after the agent was frozen and its belief was over.
//
//   INCUMBENT_CALL_URL=URL node http-call.cjs
//
// The URL is not an argument, which all users of the machine can read: its query may hold a secret.
//
// Ends with 0 when the answer is a success, with 1 when the service has refused, and with 75 when it is
// not known what the service does.
const { request } = require('node:http');

const { INCUMBENT_ELECTION, INCUMBENT_CANDIDATE, INCUMBENT_TOKEN } = process.env;
const url = new URL(process.env.INCUMBENT_CALL_URL);
// The service, or a proxy before it, did not wait for the end of the work.
const unsureStatus = new Set([408, 502, 503, 504]);
const end = (code, why) => {
  process.stderr.write(`POST ${url.origin}${url.pathname}: ${why}\n`);
  process.exitCode = code;
};
// Until there is an answer, the service may have heard the request or not.
process.exitCode = 75;
const headers = { 'content-type': 'application/json' };
const asked = request(url, { method: 'POST', headers, agent: false }, (response) => {
  const { statusCode } = response;
  response.resume();
  response.once('error', (error) => end(75, error.message));
  response.once('end', () => {
    if (statusCode >= 200 && statusCode < 300) process.exitCode = 0;
    else end(unsureStatus.has(statusCode) ? 75 : 1, `status ${statusCode}`);
  });
});
// Nothing listens there, so nothing has heard it.
asked.once('error', (error) => end(error.code === 'ECONNREFUSED' ? 1 : 75, error.message));
asked.end(
  JSON.stringify({
    election: INCUMBENT_ELECTION,
    candidate: INCUMBENT_CANDIDATE,
    token: INCUMBENT_TOKEN ?? null,
  }),
);
