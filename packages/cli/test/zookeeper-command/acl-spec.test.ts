import { expect, test } from 'vitest';
import { acl } from '../../../zookeeper/src/acl.ts';
import { formatAcl, parseAcl } from '../../src/zookeeper-command/acl-spec.ts';

test.each([
  ['world:anyone:rwcda', acl.world()],
  ['world:anyone:all', acl.world()],
  ['world:anyone:ar', acl.world(17)],
  ['auth::rwcda', acl.auth()],
  ['digest:joe:se:cret:r', acl.digest('joe', 'se:cret', 1)],
  ['ip:10.0.0.0/8:w', acl.ip('10.0.0.0/8', 2)],
  ['ip:fe80::1:c', acl.ip('fe80::1', 4)],
  ['x509:CN=joe,O=us:d', acl.x509('CN=joe,O=us', 8)],
  ['sasl:joe:a', acl.sasl('joe', 16)],
])('%s', (text, expected) => {
  expect(parseAcl(text)).toEqual(expected);
});

test('what is printed can be read again, also the hash of a password', () => {
  for (const entry of [acl.world(1), acl.digest('joe', 'secret'), acl.ip('::1', 3), acl.auth()]) {
    expect(parseAcl(formatAcl(entry))).toEqual(entry);
  }
  expect(formatAcl(acl.digest('joe', 'secret', 3))).toMatch(/^digest-hash:joe:[\w+/]{27}=:rw$/);
});

test.each([
  ['', 'an ACL is SCHEME:ID:PERMISSIONS'],
  ['world:anyone', 'an ACL is SCHEME:ID:PERMISSIONS'],
  ['world:anyone:', 'an ACL allows something'],
  ['world:anyone:rx', 'some of rwcda (read, write, create, delete, admin), not "rx"'],
  ['world:me:r', 'world:anyone:PERMISSIONS'],
  ['digest:secret:r', 'digest:USER:PASSWORD:PERMISSIONS'],
  ['digest-hash:joe:r', 'digest-hash:USER:HASH:PERMISSIONS'],
])('"%s" is refused', (text, why) => {
  expect(() => parseAcl(text)).toThrow(why);
});
