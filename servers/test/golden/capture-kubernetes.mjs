// node capture-kubernetes.mjs URL TOKEN > kubernetes.json
// Sends the requests of kubernetes-requests.mjs to a real API server (kube-apiserver of Debian's
// source package `kubernetes`, with a token file).
import { ask } from './kubernetes-ask.mjs';

const [, , url, token] = process.argv;
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
const { gitVersion } = await (await fetch(`${url}/version`)).json();
const answers = await ask(url, token);
process.stdout.write(`${JSON.stringify({ server: gitVersion, answers }, null, 2)}\n`);
