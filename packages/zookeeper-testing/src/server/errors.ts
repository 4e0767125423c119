export type TestServerErrorCode =
  | 'SERVER_UNAVAILABLE'
  | 'START_FAILED'
  | 'TIMED_OUT'
  | 'NOT_RUNNING';

/** Base class of errors of the real servers for tests. Branch on the class or `code`. */
export class TestServerError extends Error {
  override readonly name: string = 'TestServerError';
  readonly code: TestServerErrorCode;

  constructor(code: TestServerErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Java, ZooKeeper's jars or `openssl` are not on this machine; the message says what to install.
 */
export class ServerUnavailableError extends TestServerError {
  override readonly name: string = 'ServerUnavailableError';

  constructor(message: string, options?: { readonly cause?: unknown }) {
    super('SERVER_UNAVAILABLE', message, options);
  }
}

/** The server ended, or did not serve in time. The message ends with the tail of its output. */
export class ServerStartError extends TestServerError {
  override readonly name: string = 'ServerStartError';
  /** Another process has one of the ports: the same start can succeed on other ones. */
  readonly portTaken: boolean;

  constructor(message: string, output: string, portTaken = false) {
    super('START_FAILED', `${message}; its output ends with:\n${output.trim() || '(nothing)'}`);
    this.portTaken = portTaken;
  }
}
