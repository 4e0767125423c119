import type { Clock } from '../clock.ts';
import type { HostAndPort } from '../connection-string.ts';
import type { CheckedTls } from '../net/tls-options.ts';
import type { Chroot } from '../paths.ts';
import type { ExportedSession } from '../state.ts';
import type { PipelineLimits } from './pipeline.ts';

export interface SessionOptions extends PipelineLimits {
  readonly hosts: readonly HostAndPort[];
  readonly sessionTimeoutMs: number;
  readonly closeTimeoutMs: number;
  readonly maxFrameBytes: number;
  readonly tls: CheckedTls | undefined;
  readonly sasl: { readonly username: string; readonly password: string } | undefined;
  readonly readOnly: boolean;
  readonly session: ExportedSession | undefined;
  /** false for servers before 3.6. */
  readonly setWatches2: boolean;
  /** false for servers before 3.5: they close the connection on such a request. */
  readonly removeWatches: boolean;
  readonly chroot: Chroot;
  readonly clock: Clock;
  readonly random: () => number;
}
