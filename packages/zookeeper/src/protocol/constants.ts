/** Numbers of ZooKeeper's protocol, from `org.apache.zookeeper.ZooDefs` and related classes. */

/**
 * The kinds of requests. A comment names the first server that knows the kind, if that is not 3.4.
 */
export const opcodes = {
  notification: 0,
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  /** Only inside a multi. */
  check: 13,
  multi: 14,
  /** 3.5 */
  create2: 15,
  /** 3.5 */
  reconfig: 16,
  /** 3.5 */
  checkWatches: 17,
  /** 3.5 */
  removeWatches: 18,
  /** 3.5.1 */
  createContainer: 19,
  /** Sent by servers only. */
  deleteContainer: 20,
  /** 3.5.3 */
  createTtl: 21,
  /** 3.6 */
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  sasl: 102,
  /** 3.6 */
  getEphemerals: 103,
  /** 3.6 */
  getAllChildrenNumber: 104,
  /** 3.6 */
  setWatches2: 105,
  /** 3.6 */
  addWatch: 106,
  /** 3.7 */
  whoAmI: 107,
  closeSession: -11,
  /** The type of an item of a multi that failed. */
  error: -1,
} as const;

/** xids that are no request's number. */
export const xids = {
  notification: -1,
  ping: -2,
  auth: -4,
  setWatches: -8,
} as const;

/** Error codes of a reply's header. */
export const errorCodes = {
  ok: 0,
  systemError: -1,
  /** In a multi: not tried, because another operation had failed. */
  runtimeInconsistency: -2,
  dataInconsistency: -3,
  connectionLoss: -4,
  marshallingError: -5,
  unimplemented: -6,
  operationTimeout: -7,
  badArguments: -8,
  invalidState: -9,
  unknownSession: -12,
  newConfigNoQuorum: -13,
  reconfigInProgress: -14,
  apiError: -100,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  noChildrenForEphemerals: -108,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  invalidCallback: -113,
  invalidAcl: -114,
  authFailed: -115,
  sessionMoved: -118,
  notReadOnly: -119,
  ephemeralOnLocalSession: -120,
  noWatcher: -121,
  requestTimeout: -122,
  reconfigDisabled: -123,
  sessionClosedRequireSasl: -124,
  quotaExceeded: -125,
  throttled: -127,
} as const;

/** The `flags` of a create. */
export const createFlags = {
  persistent: 0,
  ephemeral: 1,
  persistentSequential: 2,
  ephemeralSequential: 3,
  container: 4,
  persistentWithTtl: 5,
  persistentSequentialWithTtl: 6,
} as const;

export const eventTypes = {
  none: -1,
  created: 1,
  deleted: 2,
  dataChanged: 3,
  childrenChanged: 4,
} as const;

export const keeperStates = {
  disconnected: 0,
  connected: 3,
  authFailed: 4,
  readOnly: 5,
  saslAuthenticated: 6,
  expired: -112,
} as const;

/** The `mode` of an addWatch. */
export const addWatchModes = { persistent: 0, persistentRecursive: 1 } as const;

/** The `type` of removeWatches and checkWatches. */
export const watcherTypes = { children: 1, data: 2, any: 3 } as const;

/** The largest frame that a server takes with its default `jute.maxbuffer`, in bytes. */
export const defaultMaxFrameBytes = 0xfffff;
