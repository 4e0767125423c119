import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import process from 'node:process';
import { ServerUnavailableError } from './errors.ts';
import type { InstallationOptions, ServerTlsOptions } from './options.ts';

export interface Installation {
  readonly java: string;
  readonly jars: readonly string[];
}

const debianJars = '/usr/share/java';
/** The manifest of Debian's jar leads to the others, but not to these, which TLS needs. */
const nettyJars = ['codec', 'resolver', 'transport-native-unix-common'].map((part) =>
  join(debianJars, `netty-${part}.jar`),
);
const serverJar = /zookeeper-?\d*[^/]*\.jar$/;
const aptGet =
  'apt-get install -y --no-install-recommends zookeeper libslf4j-java libnetty-java default-jre-headless';

/**
 * Why {@link startServer} cannot work on this machine, or undefined when it can: a reason to skip a
 * test with. Looks for files and starts nothing.
 */
export function serverAvailable(
  options: InstallationOptions & { readonly tls?: ServerTlsOptions } = {},
): string | undefined {
  try {
    findInstallation(options);
    if (options.tls !== undefined) findOpenssl();
    return undefined;
  } catch (error) {
    if (error instanceof ServerUnavailableError) return error.message;
    throw error;
  }
}

export function findInstallation(options: InstallationOptions): Installation {
  const java = findJava(options.javaPath);
  const jars = findJars(options.zookeeperHome);
  checkVersion(jars, options.version);
  return { java, jars };
}

export function findOpenssl(): string {
  const found = onPath('openssl');
  if (found !== undefined) return found;
  throw new ServerUnavailableError(
    'there is no `openssl` in PATH, which makes the certificates. On Debian: apt-get install -y openssl',
  );
}

function findJava(asked: string | undefined): string {
  if (asked !== undefined) {
    if (isProgram(asked)) return asked;
    throw new ServerUnavailableError(`the option javaPath is ${asked}, which is no program`);
  }
  const home = process.env['JAVA_HOME'];
  const ofHome = home ? join(home, 'bin', 'java') : undefined;
  const found = ofHome !== undefined && isProgram(ofHome) ? ofHome : onPath('java');
  if (found !== undefined) return found;
  throw new ServerUnavailableError(
    `a ZooKeeper server needs Java, and there is no \`java\` in JAVA_HOME or PATH. On Debian: ${aptGet}`,
  );
}

function findJars(asked: string | undefined): string[] {
  const home = asked ?? (process.env['ZOOKEEPER_HOME'] || undefined);
  if (home !== undefined) {
    // Up to 3.4 the server's own jar lay beside lib/.
    const jars = [...jarsIn(join(home, 'lib')), ...jarsIn(home)];
    if (jars.some((jar) => serverJar.test(jar))) return jars;
    const from = asked === undefined ? 'ZOOKEEPER_HOME' : 'the option zookeeperHome';
    throw new ServerUnavailableError(
      `${from} is ${home}, but there is no zookeeper jar in ${join(home, 'lib')}: it should be an unpacked binary distribution of ZooKeeper`,
    );
  }
  const server = join(debianJars, 'zookeeper.jar');
  const logger = join(debianJars, 'slf4j-simple.jar');
  if (existsSync(server) && existsSync(logger)) {
    return [server, logger, ...nettyJars.filter((jar) => existsSync(jar))];
  }
  throw new ServerUnavailableError(
    `there are no ZooKeeper jars in ${debianJars}. On Debian: ${aptGet}; elsewhere unpack a binary distribution of ZooKeeper and set ZOOKEEPER_HOME`,
  );
}

/** @throws ServerUnavailableError that says where another version comes from */
function checkVersion(jars: readonly string[], wanted: string | undefined): void {
  if (wanted === undefined) return;
  const server = jars.find((jar) => serverJar.test(jar)) ?? '';
  const found = versionOf(server);
  if (found !== undefined && `${found}.`.startsWith(`${wanted}.`)) return;
  throw new ServerUnavailableError(
    `version ${wanted} of ZooKeeper is asked for, and ${server} is ${found ?? 'of an unknown version'}: ` +
      'unpack its binary distribution (https://archive.apache.org/dist/zookeeper/), and name its folder ' +
      'in ZOOKEEPER_HOME or the option zookeeperHome',
  );
}

/** Of its name; Debian's is without a number, and a link beside it has one. */
function versionOf(jar: string): string | undefined {
  const names = [basename(jar), ...readdirSync(dirname(jar))];
  const matches = names.map((name) => /^zookeeper-(\d+(?:\.\d+)*)\.jar$/.exec(name)?.[1]);
  return matches.find((version) => version !== undefined);
}

function jarsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => name.endsWith('.jar'));
  return names.sort().map((name) => join(folder, name));
}

function onPath(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
