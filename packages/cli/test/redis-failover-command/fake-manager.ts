import type { ManagerEvent, ManagerStatus } from '../../../redis-failover/src/manager/events.ts';
import type { ManagerOptions } from '../../../redis-failover/src/manager/options.ts';
import { resolveOptions } from '../../../redis-failover/src/manager/options.ts';
import type { CommandEntry } from '../../src/redis-failover-command/command-table.ts';
import { commands } from '../../src/redis-failover-command/command-table.ts';
import { manageWith } from '../../src/redis-failover-command/commands/manage.ts';

/** A manager that does only what the test says. */
export class FakeManager {
  readonly options: ManagerOptions;
  status: ManagerStatus;
  #fail: (error: unknown) => void = () => {};

  constructor(options: ManagerOptions) {
    const { id, nodes, requiredNodeManagers } = resolveOptions(options);
    this.options = options;
    this.status = {
      id,
      state: 'starting',
      token: undefined,
      zookeeper: 'connecting',
      primary: undefined,
      term: undefined,
      nodes: nodes.map((address) => ({
        address,
        state: 'unknown',
        latencyMs: undefined,
        failures: 0,
        error: undefined,
        judged: undefined,
      })),
      managers: 0,
      requiredManagers: requiredNodeManagers,
      trouble: undefined,
      quarantined: [],
      shortLists: [],
      moves: { done: 0, failed: 0 },
    };
  }

  run(signal: AbortSignal): Promise<void> {
    this.tell({ type: 'started', id: this.status.id, nodes: this.options.nodes });
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      const stop = () => {
        this.tell({ type: 'stopped' });
        resolve();
      };
      signal.addEventListener('abort', stop);
      if (signal.aborted) stop();
    });
  }

  tell(event: ManagerEvent): void {
    this.options.onEvent?.(event);
  }

  /** Ends the run with an error. */
  fail(error: unknown): void {
    this.#fail(error);
  }

  set(change: Partial<ManagerStatus>): void {
    this.status = { ...this.status, ...change };
  }
}

/** The commands, with a `manage` that runs a fake. */
export function tableOf(onManager: (manager: FakeManager) => void): readonly CommandEntry[] {
  const manage = manageWith((options) => {
    const manager = new FakeManager(options);
    onManager(manager);
    return manager;
  });
  return commands.map((entry) =>
    entry.name === 'manage'
      ? { ...entry, load: async () => manage as Awaited<ReturnType<CommandEntry['load']>> }
      : entry,
  );
}
