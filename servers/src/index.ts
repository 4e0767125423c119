/** Real servers for tests, chaos and benchmarks: private, on loopback, gone with the process. */
export type { LocalServerPlan } from './local-server.ts';
export { LocalServer, makeServerDirectory, waitFor } from './local-server.ts';
