import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { TestCertificates } from '@incumbent/zookeeper-testing';

const run = promisify(execFile);

/**
 * A certificate for the client's key, by the authority of the test, that was valid in 2020. It uses
 * `openssl ca`, because `openssl x509` does not take two dates.
 */
export async function expiredClientCertificate(certificates: TestCertificates): Promise<string> {
  const cwd = dirname(certificates.ca.path);
  await writeFile(join(cwd, 'expired.db'), '');
  await writeFile(join(cwd, 'expired.serial'), '99\n');
  await writeFile(
    join(cwd, 'expired.cnf'),
    `[ca]
default_ca = test
[test]
database = expired.db
serial = expired.serial
new_certs_dir = .
default_md = sha256
policy = any
[any]
commonName = supplied
`,
  );
  const key = certificates.client.key.path;
  await run('openssl', ['req', '-new', '-key', key, '-subj', '/CN=client', '-out', 'expired.csr'], {
    cwd,
  });
  await run(
    'openssl',
    [
      ...['ca', '-batch', '-config', 'expired.cnf', '-in', 'expired.csr', '-out', 'expired.pem'],
      ...['-notext', '-cert', certificates.ca.path, '-keyfile', 'ca.key.pem'],
      ...['-startdate', '20200101000000Z', '-enddate', '20200201000000Z'],
    ],
    { cwd },
  );
  return readFile(join(cwd, 'expired.pem'), 'utf8');
}
