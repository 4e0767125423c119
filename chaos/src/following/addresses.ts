import type { Transport } from './messages.ts';

/** The addresses that a service publishes: one for each transport, told apart by its scheme. */
export function addressesOf(grpcPort: number, httpPort: number): readonly string[] {
  return [`127.0.0.1:${grpcPort}`, httpOrigin(httpPort)];
}

export function httpOrigin(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** As `addressOf` of the library. */
export function addressFor(transport: Transport) {
  return ({ addresses }: { readonly addresses: readonly string[] }): string | undefined =>
    addresses.find((address) => address.startsWith('http:') === (transport === 'http'));
}
