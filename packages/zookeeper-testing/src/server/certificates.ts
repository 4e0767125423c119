import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findOpenssl } from './installation.ts';

const run = promisify(execFile);

/** A file in PEM, and its content. */
export interface PemFile {
  readonly path: string;
  readonly text: string;
}

export interface KeyAndCertificate {
  readonly key: PemFile;
  readonly certificate: PemFile;
  /** The key, then the certificate: the form in which ZooKeeper takes a key store of type PEM. */
  readonly both: PemFile;
}

/** A certificate authority of its own, and two certificates it signed. */
export interface TestCertificates {
  readonly ca: PemFile;
  /** `CN=localhost`, for localhost, 127.0.0.1 and ::1. */
  readonly server: KeyAndCertificate;
  /** `CN=client`, for mutual TLS. */
  readonly client: KeyAndCertificate;
}

/**
 * Makes certificates for tests with the `openssl` program (EC P-256, valid for ten years).
 * @param directory is created when absent; the files stay there
 * @throws ServerUnavailableError without `openssl`
 */
export async function createCertificates(directory: string): Promise<TestCertificates> {
  await mkdir(directory, { recursive: true });
  const openssl = new Openssl(findOpenssl(), directory);
  const caKey = await openssl.key('ca');
  await openssl.run(
    ...['req', '-x509', '-new', '-key', caKey, '-sha256', '-days', '3650'],
    ...['-subj', '/CN=Test CA', '-out', 'ca.pem'],
  );
  const ca = await openssl.pem('ca.pem');
  // The server may look a client's address up in its certificate: both have the names.
  const [server, client] = await Promise.all([
    openssl.signed('server', 'localhost'),
    openssl.signed('client', 'client'),
  ]);
  return { ca, server, client };
}

class Openssl {
  readonly #program: string;
  readonly #directory: string;

  constructor(program: string, directory: string) {
    this.#program = program;
    this.#directory = directory;
  }

  async run(...words: string[]): Promise<void> {
    await run(this.#program, words, { cwd: this.#directory });
  }

  async pem(name: string): Promise<PemFile> {
    const path = join(this.#directory, name);
    return { path, text: await readFile(path, 'utf8') };
  }

  /** As PKCS #8, the form that Java reads. */
  async key(name: string): Promise<string> {
    const file = `${name}.key.pem`;
    const curve = 'ec_paramgen_curve:P-256';
    await this.run('genpkey', '-algorithm', 'EC', '-pkeyopt', curve, '-out', file);
    return file;
  }

  async signed(name: string, commonName: string): Promise<KeyAndCertificate> {
    const key = await this.key(name);
    const extensions = join(this.#directory, `${name}.ext`);
    await writeFile(extensions, 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n');
    const request = `${name}.csr`;
    await this.run('req', '-new', '-key', key, '-subj', `/CN=${commonName}`, '-out', request);
    // Serial numbers are given by hand: two signatures run at the same time.
    const serial = name === 'server' ? '1' : '2';
    await this.run(
      ...['x509', '-req', '-in', request, '-CA', 'ca.pem', '-CAkey', 'ca.key.pem'],
      ...['-set_serial', serial, '-sha256', '-days', '3650', '-extfile', extensions],
      ...['-out', `${name}.pem`],
    );
    const certificate = await this.pem(`${name}.pem`);
    const keyFile = await this.pem(key);
    const both = join(this.#directory, `${name}.both.pem`);
    await writeFile(both, keyFile.text + certificate.text, { mode: 0o600 });
    return { key: keyFile, certificate, both: await this.pem(`${name}.both.pem`) };
  }
}
