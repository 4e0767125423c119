import type { Tally } from '../counters.ts';
import type { Authenticator } from './authenticator.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Pipeline } from './pipeline.ts';
import type { SessionIdentity } from './session-identity.ts';
import type { SessionOptions } from './session-options.ts';
import type { SessionRunner } from './session-runner.ts';
import type { View } from './view.ts';
import type { WatchRegistry } from './watch-registry.ts';

/** The parts of a session, except its connection. */
export interface SessionParts {
  readonly options: SessionOptions;
  /** The client's number, for diagnostics. */
  readonly number: number;
  readonly tally: Tally;
  readonly machine: SessionRunner;
  readonly identity: SessionIdentity;
  readonly auth: Authenticator;
  readonly heartbeat: Heartbeat;
  readonly pipeline: Pipeline;
  readonly view: View;
  readonly watches: WatchRegistry;
}
