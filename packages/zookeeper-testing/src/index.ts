export type { FakeServer } from './fake/fake-server.ts';
export type {
  FakeNode,
  FakeSession,
  FakeWatch,
  LoggedRequest,
} from './fake/fake-zookeeper.ts';
export { FakeZooKeeper } from './fake/fake-zookeeper.ts';
export type { FakeRequest, Fault, FaultAction, FaultMatch, Faults } from './fake/faults.ts';
export type { FakeZooKeeperOptions } from './fake/options.ts';
export type { WatchMode } from './fake/watches.ts';
export type { ProxyCounters, ProxyTarget, TestProxy } from './proxy.ts';
export { startProxy } from './proxy.ts';
export type { KeyAndCertificate, PemFile, TestCertificates } from './server/certificates.ts';
export { createCertificates } from './server/certificates.ts';
export type { Child, ChildPlan } from './server/child.ts';
export { isStopped, spawnChild } from './server/child.ts';
export type { PeerPorts, TestEnsemble, TestMember } from './server/ensemble.ts';
export { startEnsemble } from './server/ensemble.ts';
export type { TestServerErrorCode } from './server/errors.ts';
export { ServerStartError, ServerUnavailableError, TestServerError } from './server/errors.ts';
export { serverAvailable } from './server/installation.ts';
export type {
  EnsembleOptions,
  InstallationOptions,
  MemberSeat,
  ServerOptions,
  ServerSaslOptions,
  ServerTlsOptions,
  WaitOptions,
} from './server/options.ts';
export { freePorts } from './server/ports.ts';
export type { RestartOptions, TestServer } from './server/server.ts';
export { startServer } from './server/server.ts';
export type { TestZooKeeper, ZooKeeperOptions } from './server/start-zookeeper.ts';
export { startZooKeeper } from './server/start-zookeeper.ts';
