import { describe, expect, it } from 'vitest';
import { acl, checkAcl, permissions } from '../src/acl.ts';
import { InvalidArgumentError } from '../src/errors.ts';

describe('acl', () => {
  it('makes every scheme', () => {
    expect(acl.world()).toEqual({ perms: 31, scheme: 'world', id: 'anyone' });
    expect(acl.auth(permissions.read)).toEqual({ perms: 1, scheme: 'auth', id: '' });
    expect(acl.ip('10.0.0.0/8', permissions.read | permissions.write)).toEqual({
      perms: 3,
      scheme: 'ip',
      id: '10.0.0.0/8',
    });
    expect(acl.x509('CN=joe').scheme).toBe('x509');
    expect(acl.sasl('joe').scheme).toBe('sasl');
  });

  it('hashes a password as the server does', () => {
    // From ZooKeeper's own documentation of DigestAuthenticationProvider, user super.
    expect(acl.digest('super', 'admin').id).toBe('super:xQJmxLMiHGwaqBvst5y6rkB6HQs=');
  });

  it.each([
    [() => acl.world(0), /sum of read 1/],
    [() => acl.world(32), /not 32/],
    [() => acl.world(1.5), /not 1\.5/],
    [() => acl.digest('a:b', 'pw'), /":"/],
    [() => acl.digest('', 'pw'), /empty/],
    [() => checkAcl([]), /at least one entry/],
    [() => checkAcl([{ perms: 1, scheme: 'ip' } as never]), /\{perms, scheme, id\}/],
    [() => checkAcl([{ perms: 99, scheme: 'ip', id: '::1' }]), /not 99/],
    [() => checkAcl(undefined as never), /at least one entry/],
  ])('refuses bad input %#', (make, why) => {
    expect(make).toThrow(InvalidArgumentError);
    expect(make).toThrow(why);
  });
});
