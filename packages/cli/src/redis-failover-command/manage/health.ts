import type { ManagerStatus } from '@incumbent/redis-failover';

/**
 * The reasons why a manager is not ready: the codes of its troubles, and two that it has before it
 * begins.
 */
export interface NotReady {
  readonly code: string;
  readonly message: string;
}

/**
 * A manager is ready if it does its part: it reaches ZooKeeper, enough managers report, and there
 * is a primary. A manager that waits while another one leads is ready, too.
 */
export function whyNotReady(status: ManagerStatus): NotReady | undefined {
  const { state, zookeeper, trouble, managers, requiredManagers, primary } = status;
  if (state === 'stopped') return { code: 'STOPPED', message: 'the manager is stopping' };
  if (zookeeper !== 'connected') {
    return { code: 'ZOOKEEPER_AWAY', message: `no connection with ZooKeeper: ${zookeeper}` };
  }
  if (trouble !== undefined) return trouble;
  if (state === 'starting') return { code: 'STARTING', message: 'the manager is starting' };
  if (managers < requiredManagers) {
    const message = `${managers} of ${requiredManagers} required managers report`;
    return { code: 'TOO_FEW_MANAGERS', message };
  }
  if (primary === undefined) return { code: 'STARTING', message: 'no primary was found yet' };
  if (primary === null) return { code: 'NO_PRIMARY', message: 'the primary is being moved' };
  return undefined;
}

/** The body of /readyz. */
export function readyBody(status: ManagerStatus): object {
  const why = whyNotReady(status);
  const { id, state, token, zookeeper, primary, term, managers, requiredManagers, nodes } = status;
  const { quarantined, shortLists } = status;
  return {
    ready: why === undefined,
    ...(why === undefined ? {} : { code: why.code, message: why.message }),
    manager: id,
    state,
    token: token ?? null,
    zookeeper,
    primary: primary ?? null,
    term: term ?? null,
    degraded: quarantined.length > 0 || shortLists.length > 0,
    quarantined,
    shortLists,
    managers,
    requiredManagers,
    nodes: nodes.map(({ address, state: seen, failures, latencyMs, error, judged }) => ({
      address,
      state: seen,
      judged: judged ?? null,
      failures,
      latencyMs: latencyMs ?? null,
      error: error?.message ?? null,
    })),
  };
}
