import type { CallOptions } from './arguments.ts';
import { checkTimeout } from './arguments.ts';
import type { Clock, Timer } from './clock.ts';
import type { Chroot } from './paths.ts';
import { checkPath } from './paths.ts';
import type { Operation } from './session/pending-request.ts';
import { PendingRequest } from './session/pending-request.ts';
import type { Session } from './session/session.ts';

/** Makes calls for the parts of the client. */
export class Caller {
  readonly session: Session;
  readonly chroot: Chroot;
  readonly clock: Clock;
  /** Whether the server answers a create with the node's Stat (3.5). */
  readonly withStat: boolean;

  constructor(session: Session, chroot: Chroot, clock: Clock, withStat: boolean) {
    this.session = session;
    this.chroot = chroot;
    this.clock = clock;
    this.withStat = withStat;
  }

  /** The server's path for a path of the user. @throws InvalidArgumentError */
  serverPath(path: string): string {
    checkPath(path);
    return this.chroot.toServer(path);
  }

  /**
   * Sends a request, or lets it wait for a connection. Settles exactly once.
   * @param path as the user gave it; for errors
   * @param options names are checked by the caller
   */
  call<Request, Response, Result>(
    operation: Operation<Request, Response, Result>,
    path: string | undefined,
    body: Request,
    options: CallOptions | undefined,
  ): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const settle = resolve as (result: unknown) => void;
      const request = new PendingRequest(operation, path, settle, reject);
      const refusal = this.session.refusal(request);
      if (refusal !== undefined) {
        request.fail(() => refusal);
        return;
      }
      if (options !== undefined && !this.#bound(request, options)) return;
      this.session.submit(request, body);
    });
  }

  /** @returns false if the call has failed already */
  #bound(request: PendingRequest, options: CallOptions): boolean {
    const { signal, timeoutMs } = options;
    if (signal === undefined && timeoutMs === undefined) return true;
    if (signal?.aborted === true) {
      request.fail(() => signal.reason);
      return false;
    }
    let timer: Timer | undefined;
    if (timeoutMs !== undefined) {
      try {
        request.timeoutMs = checkTimeout('timeoutMs', timeoutMs);
      } catch (error) {
        request.fail(() => error);
        return false;
      }
      request.hasOwnTimer = true;
      timer = this.clock.setTimer(() => this.session.pipeline.timeOut(request), timeoutMs);
    }
    request.bind(signal, timer, () => {
      this.session.pipeline.abandon(request, () => signal?.reason);
    });
    return true;
  }
}
