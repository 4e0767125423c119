// Which addresses of a host a candidate offers to others.
import { syncBuiltinESMExports } from 'node:module';
import type { NetworkInterfaceInfo } from 'node:os';
import os from 'node:os';
import { afterEach, expect, test, vi } from 'vitest';
import { selfAddresses } from '../src/index.ts';

/** The network interfaces of this host. */
function offer(interfaces: Record<string, Partial<NetworkInterfaceInfo>[] | undefined>): void {
  vi.spyOn(os, 'networkInterfaces').mockReturnValue(
    interfaces as ReturnType<typeof os.networkInterfaces>,
  );
  syncBuiltinESMExports();
}

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

function entry(
  family: 'IPv4' | 'IPv6',
  address: string,
  internal = false,
): Partial<NetworkInterfaceInfo> {
  return { family, address, internal } as Partial<NetworkInterfaceInfo>;
}

test('every address that others may reach a host by is offered, with the port', () => {
  offer({
    eth0: [entry('IPv4', '10.0.0.7'), entry('IPv6', '2001:db8::7')],
    eth1: [entry('IPv4', '192.168.1.2'), entry('IPv6', 'fd00::7')],
  });
  expect(selfAddresses(50_051)).toEqual([
    '10.0.0.7:50051',
    '[2001:db8::7]:50051',
    '192.168.1.2:50051',
    '[fd00::7]:50051',
  ]);
});

test.each([
  ['loopback', entry('IPv4', '127.0.0.1', true)],
  ['loopback', entry('IPv6', '::1', true)],
  ['link-local', entry('IPv4', '169.254.1.1')],
  ['link-local', entry('IPv6', 'fe80::1')],
  ['link-local', entry('IPv6', 'FEBF::1')],
  ['multicast', entry('IPv6', 'ff02::1')],
])('a %s address is not: %j', (_, address) => {
  offer({ eth0: [address, entry('IPv4', '10.0.0.7')], gone: undefined });
  expect(selfAddresses(1)).toEqual(['10.0.0.7:1']);
});
