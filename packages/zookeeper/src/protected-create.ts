/**
 * Curator's protected create: the name carries a guid. After a lost reply the client looks for the
 * node under its parent, behind a `sync`, so that it sees what was committed. It sends the create
 * again only if the node is not there. This ends with the session, because an ephemeral node of an
 * expired session has no owner.
 */
import { randomUUID } from 'node:crypto';
import type { CallOptions, Data } from './arguments.ts';
import { copyOf, describe } from './arguments.ts';
import { boundsOf } from './bounds.ts';
import type { Caller } from './caller.ts';
import type { Instant } from './clock.ts';
import { readClocks } from './clock.ts';
import type { CreateOptions, CreatePlan } from './create.ts';
import { planCreate, sendCreate } from './create.ts';
import type { ErrorContext } from './errors.ts';
import {
  ConnectionLossError,
  InvalidArgumentError,
  RequestTimeoutError,
  SessionError,
  sessionExpired,
  ZooKeeperError,
} from './errors.ts';
import { checkPath, join, nameOf, parentOf } from './paths.ts';
import type { PathMessage } from './protocol/messages.ts';
import { requests } from './protocol/requests.ts';
import type { CreateReply } from './replies.ts';
import type { Operation } from './session/pending-request.ts';

/** One protected create, with all its requests. */
export class ProtectedCreate {
  readonly #caller: Caller;
  readonly #path: string;
  readonly #options: CreateOptions;
  readonly #parent: string;
  /** The name with the guid. The server may append a number. */
  readonly #name: string;
  readonly #plan: CreatePlan;
  readonly #timeoutMs: number;
  readonly #bounds: () => CallOptions | undefined;
  readonly #startedAt: Instant;

  /** @throws InvalidArgumentError */
  constructor(caller: Caller, path: string, data: Data, options: CreateOptions) {
    checkPath(path, options.sequential);
    if (path === '/' && options.sequential !== true) {
      throw new InvalidArgumentError('the root exists and cannot be made', { path });
    }
    this.#caller = caller;
    this.#path = path;
    this.#options = options;
    this.#parent = parentOf(path);
    this.#name = `_c_${guidOf(options.protected)}-${nameOf(path)}`;
    this.#plan = planCreate(caller, this.#protectedPath, copyOf(data), options);
    const { signal, timeoutMs = caller.session.retryTimeoutMs } = options;
    this.#timeoutMs = timeoutMs;
    this.#bounds = boundsOf(caller, { signal, timeoutMs });
    this.#startedAt = readClocks(caller.clock);
  }

  get #protectedPath(): string {
    return join(this.#parent, this.#name);
  }

  async run(): Promise<CreateReply> {
    const { session } = this.#caller;
    let sessionId = session.info?.id;
    let inDoubt = false;
    for (;;) {
      try {
        if (inDoubt) {
          const found = await this.#find();
          if (found !== undefined) return found;
          // The lost request cannot be applied any more, so the next one decides alone.
          inDoubt = false;
        }
        return await sendCreate(this.#caller, this.#protectedPath, this.#plan, this.#bounds());
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) {
          throw inDoubt ? this.#stillInDoubt(error) : error;
        }
        inDoubt ||= error.maybeApplied;
        // In another session the node could be made twice: a request of the old session may still
        // be applied.
        const now = session.info?.id;
        sessionId ??= now;
        if (now === undefined || now !== sessionId) {
          throw this.#stillInDoubt(sessionExpired(this.#contextOf(error)));
        }
      }
    }
  }

  /** The search failed, so the node may still exist, and the error has to say so. */
  #stillInDoubt(error: unknown): unknown {
    if (!(error instanceof ZooKeeperError)) return error;
    // If the node was made, it goes with its session.
    if (error instanceof SessionError && this.#options.ephemeral === true) return error;
    const context = this.#contextOf(error);
    return error instanceof RequestTimeoutError
      ? new RequestTimeoutError(this.#timeoutMs, true, context)
      : new ConnectionLossError(true, context);
  }

  #contextOf(cause: unknown): ErrorContext {
    return { path: this.#path, operation: this.#plan.kind.name, cause };
  }

  async #find(): Promise<CreateReply | undefined> {
    const parent = this.#parent;
    const path = this.#caller.chroot.toServer(parent);
    await this.#caller.call(sync, parent, { path }, this.#bounds());
    const names = await this.#caller.call(
      { kind: requests.getChildren, complete: ({ children }) => children, absent: () => [] },
      parent,
      { path, watch: false },
      this.#bounds(),
    );
    for (const name of names) {
      if (!wasMadeOf(name, this.#name, this.#options.sequential ?? false)) continue;
      const found = await this.#look(join(parent, name));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #look(candidate: string): Promise<CreateReply | undefined> {
    const { chroot, session } = this.#caller;
    return this.#caller.call(
      {
        kind: requests.exists,
        complete: ({ stat }, { zxid }) => {
          // The guid may have been used before, by a session whose node the servers still have.
          const ours = this.#options.ephemeral !== true || stat.ephemeralOwner === session.info?.id;
          // One of our requests made it, so none that was sent before the first one.
          return ours ? { path: candidate, stat, zxid, sentAt: this.#startedAt } : undefined;
        },
        absent: () => undefined,
      },
      candidate,
      { path: chroot.toServer(candidate), watch: false },
      this.#bounds(),
    );
  }
}

/** Whether `name` is the name that the server makes of ours: the same, or with its number. */
function wasMadeOf(name: string, wanted: string, sequential: boolean): boolean {
  if (!sequential) return name === wanted;
  return (
    name.startsWith(wanted) && /^(?:\d{10}|-\d{9}|-[12]\d{9})$/.test(name.slice(wanted.length))
  );
}

const sync: Operation<PathMessage, unknown, undefined> = {
  kind: requests.sync,
  complete: () => undefined,
};

function guidOf(option: boolean | string | undefined): string {
  // Without the cache of random bytes: a snapshot of this process would repeat it.
  if (option === true) return randomUUID({ disableEntropyCache: true });
  if (typeof option === 'string' && /^[0-9A-Za-z-]{8,64}$/.test(option)) return option;
  throw new InvalidArgumentError(
    `protected is true or a guid of 8 to 64 letters, digits and "-", not ${describe(option)}`,
  );
}
