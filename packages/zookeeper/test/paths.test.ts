import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../src/errors.ts';
import { Chroot, checkPath, join, nameOf, parentOf } from '../src/paths.ts';

describe('checkPath', () => {
  it.each(['/', '/a', '/a/b.c', '/...', '/a/..b', '/é/日本', '/a b'])('takes %j', (path) => {
    expect(() => checkPath(path)).not.toThrow();
  });

  it.each([
    ['', /empty/],
    ['a/b', /relative/],
    ['/a/', /ends with/],
    ['//', /ends with/],
    ['/a//b', /empty component/],
    ['/.', /component "\."/],
    ['/..', /component "\.\."/],
    ['/a/./b', /component "\."/],
    ['/a/../b', /component "\.\."/],
    ['/a\u0000b', /U\+0000/],
    ['/a\u001fb', /U\+001f/],
    ['/a\u007f', /U\+007f/],
    ['/a\u0085', /U\+0085/],
    ['/a\ud800', /U\+d800/],
    ['/😀', /U\+d83d/],
    ['/a\ue000', /U\+e000/],
    ['/a\uffff', /U\+ffff/],
  ])('refuses %j', (path, why) => {
    expect(() => checkPath(path)).toThrow(InvalidArgumentError);
    expect(() => checkPath(path)).toThrow(why);
  });

  it('refuses what is not a string', () => {
    expect(() => checkPath(7 as unknown as string)).toThrow(/a string, not number/);
  });

  it('takes a trailing slash where the server appends a number', () => {
    expect(() => checkPath('/a/', true)).not.toThrow();
    expect(() => checkPath('/', true)).not.toThrow();
    expect(() => checkPath('/a//', true)).toThrow(/empty component/);
  });
});

describe('Chroot', () => {
  const chroot = new Chroot('/app/x');

  it('puts itself in front, and takes itself away', () => {
    for (const path of ['/', '/a', '/a/b']) expect(chroot.toUser(chroot.toServer(path))).toBe(path);
    expect(chroot.toServer('/')).toBe('/app/x');
    expect(chroot.toServer('/a')).toBe('/app/x/a');
  });

  it('leaves alone what only looks as if it lay below', () => {
    expect(chroot.toUser('/app/xy')).toBe('/app/xy');
    expect(chroot.toUser('/zookeeper/config')).toBe('/zookeeper/config');
  });

  it('is nothing for "/"', () => {
    expect(new Chroot('/').toServer('/a')).toBe('/a');
    expect(new Chroot('/').toUser('/a')).toBe('/a');
  });
});

describe('parts of a path', () => {
  it('knows the parent, the name and how they join', () => {
    expect([parentOf('/a/b'), nameOf('/a/b'), join('/a', 'b')]).toEqual(['/a', 'b', '/a/b']);
    expect([parentOf('/a'), nameOf('/a'), join('/', 'a')]).toEqual(['/', 'a', '/a']);
  });
});
