import { expect, it } from 'vitest';
import {
  AuthError,
  acl,
  BadVersionError,
  InvalidArgumentError,
  permissions,
} from '../../src/index.ts';
import type { World } from './world.ts';
import { refusal } from './world.ts';

/** Rights on nodes, and the identities that the server knows us by. */
export function access(world: World): void {
  const { subject } = world.capabilities;

  it('lets everybody do everything unless told otherwise', async () => {
    const client = await world.client();
    await client.create('/n');
    const { acl: list, stat } = await client.getAcl('/n');
    expect(list).toEqual([acl.world()]);
    expect(list).toEqual([{ perms: permissions.all, scheme: 'world', id: 'anyone' }]);
    expect(stat.aversion).toBe(0);
  });

  it('keeps strangers out, and lets in who authenticates', async () => {
    const client = await world.client();
    const joe = acl.digest('joe', 'secret');
    await client.create('/joes', 'x', { acl: [joe] });
    const attempts = [
      client.get('/joes'),
      client.set('/joes', ''),
      client.getChildren('/joes'),
      client.getAcl('/joes'),
      client.setAcl('/joes', [acl.world()]),
      client.create('/joes/child'),
    ];
    for (const attempt of attempts) {
      await refusal(attempt, AuthError, { code: 'NO_AUTH', serverCode: -102 });
    }
    expect(await client.exists('/joes')).toBe(true);

    await client.addAuth('digest', 'joe:secret');
    expect((await client.get('/joes')).text).toBe('x');
    expect((await client.getAcl('/joes')).acl).toEqual([joe]);
    const early = await world.client({
      auth: [{ scheme: 'digest', credentials: new TextEncoder().encode('joe:secret') }],
    });
    expect((await early.get('/joes')).text).toBe('x');
  });

  it('allows each right by itself', async () => {
    const client = await world.client();
    const other = await world.client();
    await client.addAuth('digest', 'joe:secret');
    const admin = acl.digest('joe', 'secret');
    const make = (path: string, perms: number) =>
      client.create(path, null, { acl: [admin, acl.world(perms)] });
    await make('/read', permissions.read);
    await make('/write', permissions.write);
    await make('/create', permissions.create);
    await make('/delete', permissions.delete);
    await client.create('/create/child');
    await client.create('/delete/child');
    await other.sync('/');

    await other.get('/read');
    await refusal(other.set('/read', ''), AuthError, { code: 'NO_AUTH' });
    await other.set('/write', '');
    await refusal(other.get('/write'), AuthError, { code: 'NO_AUTH' });
    await other.create('/create/another');
    await refusal(other.delete('/create/child'), AuthError, { code: 'NO_AUTH' });
    await other.delete('/delete/child');
    await refusal(other.create('/delete/another'), AuthError, { code: 'NO_AUTH' });
  });

  it('changes an ACL by its version', async () => {
    const client = await world.client();
    await client.create('/n');
    const once = await client.setAcl('/n', [acl.world(), acl.ip('10.0.0.0/8')], { version: 0 });
    expect(once.stat).toMatchObject({ aversion: 1, version: 0 });
    await refusal(client.setAcl('/n', [acl.world()], { version: 0 }), BadVersionError, {
      path: '/n',
      operation: 'setAcl',
    });
    expect((await client.getAcl('/n')).acl).toEqual([acl.world(), acl.ip('10.0.0.0/8')]);
  });

  it('puts the creator into an ACL of `auth`', async () => {
    const client = await world.client();
    const perms = permissions.read | permissions.admin;
    if (subject === undefined) {
      await refusal(client.create('/n', null, { acl: [acl.auth()] }), AuthError, {
        code: 'INVALID_ACL',
        path: '/n',
      });
    }
    await client.addAuth('digest', 'joe:secret');
    await client.create('/n', null, { acl: [acl.auth(perms)] });
    const { acl: list } = await client.getAcl('/n');
    expect(list).toContainEqual(acl.digest('joe', 'secret', perms));
    expect(list.length).toBe(subject === undefined ? 1 : 2);
    if (subject !== undefined) expect(list).toContainEqual(acl.x509(subject, perms));
  });

  it('lets in by address', async () => {
    const client = await world.client();
    await client.create('/near', 'x', { acl: [acl.ip('127.0.0.0/8')] });
    await client.create('/far', 'x', { acl: [acl.ip('10.1.2.3')] });
    expect((await client.get('/near')).text).toBe('x');
    await refusal(client.get('/far'), AuthError, { code: 'NO_AUTH', path: '/far' });
  });

  if (subject !== undefined) {
    it('lets in by certificate', async () => {
      const client = await world.client();
      await client.create('/mine', 'x', { acl: [acl.x509(subject)] });
      await client.create('/theirs', 'x', { acl: [acl.x509('CN=somebody else')] });
      expect((await client.get('/mine')).text).toBe('x');
      await refusal(client.get('/theirs'), AuthError, { code: 'NO_AUTH' });
    });
  }

  it('refuses what is no ACL', async () => {
    const client = await world.client();
    for (const bad of [[], [{}], [{ ...acl.world(), perms: 0 }], [{ ...acl.world(), perms: 32 }]]) {
      await refusal(client.create('/n', null, { acl: bad as never }), InvalidArgumentError);
      await refusal(client.setAcl('/', bad as never), InvalidArgumentError);
    }
    const nonsense = [{ perms: 31, scheme: 'nonsense', id: 'x' }];
    await refusal(client.create('/n', null, { acl: nonsense }), AuthError, {
      code: 'INVALID_ACL',
    });
    expect(() => acl.digest('a:b', 'c')).toThrow(InvalidArgumentError);
    expect(() => acl.world(0)).toThrow(InvalidArgumentError);
  });

  it('asks the server who we are', async () => {
    const client = await world.client();
    await client.addAuth('digest', 'joe:secret');
    const { identities } = await client.whoAmI();
    const schemes = identities.map(({ scheme }) => scheme);
    expect(schemes).toContain('ip');
    expect(identities).toContainEqual({ scheme: 'ip', user: '127.0.0.1' });
    expect(identities).toContainEqual({ scheme: 'digest', user: 'joe' });
  });

  it('a scheme that the server does not know fails the client for good', async () => {
    const client = await world.client();
    await refusal(client.addAuth('nonsense', 'x'), AuthError, { code: 'AUTH_FAILED' });
    await refusal(client.get('/'), AuthError, { code: 'AUTH_FAILED' });
    expect(client.state).toBe('auth-failed');
  });
}
