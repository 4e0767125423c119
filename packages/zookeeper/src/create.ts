import { randomUUID } from 'node:crypto';
import { acl, checkAcl } from './acl.ts';
import type { CallOptions, Data } from './arguments.ts';
import { checkOptions, checkTtl, copyOf, describe, namesOf, toBytes } from './arguments.ts';
import type { Caller } from './caller.ts';
import { readClocks } from './clock.ts';
import {
  ConnectionLossError,
  InvalidArgumentError,
  RequestTimeoutError,
  SessionError,
  sessionExpired,
  ZooKeeperError,
} from './errors.ts';
import { checkPath, join, nameOf, parentOf } from './paths.ts';
import { createFlags } from './protocol/constants.ts';
import type {
  Acl,
  Create2Response,
  CreateRequest,
  CreateTtlRequest,
  PathMessage,
} from './protocol/messages.ts';
import type { RequestKind } from './protocol/requests.ts';
import { requests } from './protocol/requests.ts';
import type { CreateReply } from './replies.ts';
import type { AnswerOf, ReplyHandlers } from './session/pending-request.ts';

/** What kind of node to make. */
export interface NodeOptions {
  /** Deleted with the session (default false). */
  readonly ephemeral?: boolean | undefined;
  /** The server appends a number of ten digits to the name that only grows (default false). */
  readonly sequential?: boolean | undefined;
  /** Deleted by the server some time after its last child. Neither of the above. */
  readonly container?: boolean | undefined;
  /** Deleted by the server so long after its last change if it has no children. Not ephemeral, and
   *  not undefined. */
  readonly ttlMs?: number;
  /** Who may do what (default: everybody everything). Not undefined. */
  readonly acl?: readonly Acl[];
}

const nodeOptions = namesOf<NodeOptions>({
  ...{ ephemeral: true, sequential: true, container: true, ttlMs: true, acl: true },
});

export interface CreateOptions extends NodeOptions, CallOptions {
  /**
   * Finds the node again when the reply is lost, instead of making a second one: the name becomes
   * `_c_<guid>-name`, as Curator writes it. true makes a guid; a string is one (default false).
   * Ends with the session: SESSION_EXPIRED says of an ephemeral node that it may have been made, and
   * has gone or will go; of others that is CONNECTION_LOSS, `maybeApplied`.
   */
  readonly protected?: boolean | string | undefined;
}

const createOptions = [
  ...nodeOptions,
  ...namesOf<Omit<CreateOptions, keyof NodeOptions>>({
    ...{ signal: true, timeoutMs: true, protected: true },
  }),
];

type CreateKind =
  | RequestKind<CreateTtlRequest, Create2Response>
  | RequestKind<CreateRequest, Create2Response>
  | RequestKind<CreateRequest, PathMessage>;

export interface CreatePlan {
  readonly kind: CreateKind;
  readonly body: CreateTtlRequest;
}

export function checkCreateOptions(options: CreateOptions): void {
  checkOptions('create', options, createOptions);
}

/** A create in a transaction: the bounds are those of the whole, and nothing of it is done twice. */
export function checkNodeOptions(options: NodeOptions): void {
  checkOptions('create in a transaction', options, nodeOptions);
}

/** Which request makes such a node. @throws InvalidArgumentError */
export function planCreate(
  caller: Caller,
  path: string,
  data: Data,
  options: NodeOptions,
  withStat: boolean,
): CreatePlan {
  const { ephemeral = false, sequential = false, container = false, ttlMs } = options;
  checkPath(path, sequential);
  if (container && (ephemeral || sequential || ttlMs !== undefined)) {
    throw new InvalidArgumentError(
      `${path}: a container is neither ephemeral nor sequential and has no TTL`,
      { path },
    );
  }
  if (ephemeral && ttlMs !== undefined) {
    throw new InvalidArgumentError(
      `${path}: an ephemeral node ends with its session and takes no ttlMs (${ttlMs})`,
      { path },
    );
  }
  if (options.acl !== undefined) checkAcl(options.acl);
  const body = (flags: number): CreateTtlRequest => ({
    path: sequential ? caller.chroot.prefix + path : caller.chroot.toServer(path),
    data: toBytes(data, path),
    acl: options.acl ?? open,
    flags,
    ttlMs: ttlMs === undefined ? 0 : checkTtl(ttlMs, path),
  });
  if (container) return { kind: requests.createContainer, body: body(createFlags.container) };
  if (ttlMs !== undefined) {
    const flags = sequential
      ? createFlags.persistentSequentialWithTtl
      : createFlags.persistentWithTtl;
    return { kind: requests.createTtl, body: body(flags) };
  }
  const flags = (ephemeral ? createFlags.ephemeral : 0) | (sequential ? 2 : 0);
  return { kind: withStat ? requests.create2 : requests.create, body: body(flags) };
}

const open: readonly Acl[] = [acl.world()];

export function sendCreate(
  caller: Caller,
  path: string,
  plan: CreatePlan,
  options: CallOptions | undefined,
): Promise<CreateReply> {
  const handlers: ReplyHandlers<PathMessage | Create2Response, CreateReply> = {
    complete: (response, { zxid, sentAt }: AnswerOf) => ({
      path: caller.chroot.toUser(response.path),
      stat: 'stat' in response ? response.stat : null,
      zxid,
      sentAt,
    }),
  };
  return caller.call(
    plan.kind as RequestKind<CreateTtlRequest, PathMessage | Create2Response>,
    path,
    plan.body,
    handlers,
    options,
  );
}

/**
 * Curator's protected create: the name carries a guid. After a lost reply the parent is listed
 * behind a `sync`, so that what was committed is seen; only if the node is not there is it made.
 * Ends with the session: an ephemeral node of an expired one is nobody's.
 */
export async function createProtected(
  caller: Caller,
  path: string,
  data: Data,
  options: CreateOptions,
  withStat: boolean,
): Promise<CreateReply> {
  checkPath(path, options.sequential);
  if (path === '/' && options.sequential !== true) {
    throw new InvalidArgumentError('the root exists and cannot be made', { path });
  }
  const guid = guidOf(options.protected);
  const parent = parentOf(path);
  const prefix = `_c_${guid}-`;
  const protectedPath = join(parent, prefix + nameOf(path));
  const plan = planCreate(caller, protectedPath, copyOf(data), options, withStat);
  const { signal, timeoutMs = caller.session.retryTimeoutMs } = options;
  const bounds = boundsOf(caller, { signal, timeoutMs });
  const startedAt = readClocks(caller.clock);
  let sessionId = caller.session.info?.id;
  let inDoubt = false;
  for (;;) {
    try {
      if (inDoubt) {
        const found = await find();
        if (found !== undefined) return found;
        // What was lost cannot land any more: from here on the next request speaks for itself.
        inDoubt = false;
      }
      return await sendCreate(caller, protectedPath, plan, bounds());
    } catch (error) {
      if (!(error instanceof ConnectionLossError)) throw inDoubt ? stillInDoubt(error) : error;
      inDoubt ||= error.maybeApplied;
      // In another session it could be made twice: what the old one sent may still be applied.
      const now = caller.session.info?.id;
      sessionId ??= now;
      if (now === undefined || now !== sessionId) {
        const context = { path, operation: plan.kind.name, cause: error };
        throw stillInDoubt(sessionExpired(context));
      }
    }
  }

  /** The search for a node that may be there has failed: that it may be there is what to say. */
  function stillInDoubt(error: unknown): unknown {
    if (!(error instanceof ZooKeeperError)) return error;
    // If it was made, it goes with its session.
    if (error instanceof SessionError && options.ephemeral === true) return error;
    const context = { path, operation: plan.kind.name, cause: error };
    return error instanceof RequestTimeoutError
      ? new RequestTimeoutError(timeoutMs, true, context)
      : new ConnectionLossError(true, context);
  }

  async function find(): Promise<CreateReply | undefined> {
    const serverParent = caller.chroot.toServer(parent);
    await caller.call(requests.sync, parent, { path: serverParent }, nothing, bounds());
    const names = await caller.call(
      requests.getChildren,
      parent,
      { path: serverParent, watch: false },
      { complete: ({ children }) => children, absent: () => [] },
      bounds(),
    );
    for (const name of names) {
      if (!wasMadeOf(name, prefix + nameOf(path), options.sequential ?? false)) continue;
      const found = await look(join(parent, name));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function look(candidate: string): Promise<CreateReply | undefined> {
    return caller.call(
      requests.exists,
      candidate,
      { path: caller.chroot.toServer(candidate), watch: false },
      {
        complete({ stat }, { zxid }) {
          // A guid may have been used before: by a session whose node the servers still have.
          const ours =
            options.ephemeral !== true || stat.ephemeralOwner === caller.session.info?.id;
          // It was made by one of our requests: by none that was sent earlier than the first.
          return ours ? { path: candidate, stat, zxid, sentAt: startedAt } : undefined;
        },
        absent: () => undefined,
      },
      bounds(),
    );
  }
}

/** Whether the server made `name` of what we asked for: the same, or with its number. */
function wasMadeOf(name: string, wanted: string, sequential: boolean): boolean {
  if (!sequential) return name === wanted;
  return (
    name.startsWith(wanted) && /^(?:\d{10}|-\d{9}|-[12]\d{9})$/.test(name.slice(wanted.length))
  );
}

const nothing: ReplyHandlers<unknown, undefined> = { complete: () => undefined };

function guidOf(option: boolean | string | undefined): string {
  // Without the cache: a copy of this process would have a copy of it.
  if (option === true) return randomUUID({ disableEntropyCache: true });
  if (typeof option === 'string' && /^[0-9A-Za-z-]{8,64}$/.test(option)) return option;
  throw new InvalidArgumentError(
    `protected is true or a guid of 8 to 64 letters, digits and "-", not ${describe(option)}`,
  );
}

/**
 * What is left of the bound of a call that takes several requests.
 * @param writes whether something may have been applied when it has passed
 */
export function boundsOf(
  caller: Caller,
  { signal, timeoutMs }: CallOptions,
  writes = true,
): () => CallOptions | undefined {
  if (timeoutMs === undefined) return () => (signal === undefined ? undefined : { signal });
  const endMs = caller.clock.monotonicMs() + timeoutMs;
  return () => {
    const leftMs = endMs - caller.clock.monotonicMs();
    if (leftMs <= 0) throw new RequestTimeoutError(timeoutMs, writes, {});
    return { signal, timeoutMs: leftMs };
  };
}
