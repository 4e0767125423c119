import { describe, expect, it } from 'vitest';
import { formatHosts, parseConnectionString, parseDuration } from '../src/connection-string.ts';
import { InvalidArgumentError } from '../src/errors.ts';

describe('parseConnectionString', () => {
  it('reads every part', () => {
    expect(parseConnectionString('zks://h1:2181,[::1]:2182,h3/a/b?timeout=10s')).toEqual({
      hosts: [
        { host: 'h1', port: 2181 },
        { host: '::1', port: 2182 },
        { host: 'h3', port: 2181 },
      ],
      chroot: '/a/b',
      tls: true,
      sessionTimeoutMs: 10_000,
    });
  });

  it.each([
    ['h1', [{ host: 'h1', port: 2181 }], '/'],
    [
      '10.0.0.1:1,10.0.0.2:65535/x',
      [
        { host: '10.0.0.1', port: 1 },
        { host: '10.0.0.2', port: 65_535 },
      ],
      '/x',
    ],
    ['zk://h1/', [{ host: 'h1', port: 2181 }], '/'],
    ['zk://h1/a/', [{ host: 'h1', port: 2181 }], '/a'],
    ['zk://h1/%C3%A9', [{ host: 'h1', port: 2181 }], '/é'],
    ['ZK://[fe80::1%25eth0]:9', [{ host: 'fe80::1%25eth0', port: 9 }], '/'],
    [
      ' h1 , h2 ',
      [
        { host: 'h1', port: 2181 },
        { host: 'h2', port: 2181 },
      ],
      '/',
    ],
  ])('reads %s', (text, hosts, chroot) => {
    expect(parseConnectionString(text)).toMatchObject({ hosts, chroot });
  });

  it.each([
    ['', /names no host/],
    ['zk://', /names no host/],
    ['zk:///a', /names no host/],
    ['http://h1', /scheme "http"/],
    ['zk://h1:0', /port "0"/],
    ['zk://h1:65536', /port "65536"/],
    ['zk://h1:abc', /port "abc"/],
    ['zk://h1:', /port ""/],
    ['zk://h1,,h2', /empty host/],
    ['zk://::1:2181', /brackets/],
    ['zk://user@h1', /"@"/],
    ['zk://h1#x', /fragment/],
    ['zk://h1?timeout=10', /timeout "10"/],
    ['zk://h1:2181/app,h2:2181/app', /behind the chroot/],
    ['zk://h1/app,h2:2181', /behind the chroot/],
    ['zk://h1?timeout=10s?x', /two "\?"/],
    ['zk://h1?timeout=soon', /timeout "soon"/],
    ['zk://h1?timeout=1s&timeout=2s', /two timeouts/],
    ['zk://h1?chroot=/a', /parameter "chroot"/],
    ['zk://h1//a', /empty component/],
    ['zk://h1/a/../b', /component "\.\."/],
    ['zk://h1/%', /escape/],
    ['zk://h1/a%00b', /U\+0000/],
  ])('refuses %j and says why', (text, why) => {
    expect(() => parseConnectionString(text)).toThrow(InvalidArgumentError);
    expect(() => parseConnectionString(text)).toThrow(why);
    // The message shows the value, and an example.
    expect(() => parseConnectionString(text)).toThrow(/zk:\/\/host1:2181/);
  });

  it('refuses what is not a string', () => {
    expect(() => parseConnectionString(undefined as unknown as string)).toThrow(/not a undefined/);
  });

  it('writes hosts as they are read', () => {
    expect(formatHosts(parseConnectionString('a:1,[::1]:2').hosts)).toBe('a:1,[::1]:2');
  });
});

describe('parseDuration', () => {
  it.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['1.5s', 1_500],
    ['2m', 120_000],
    ['250', undefined],
    ['10h', undefined],
    ['-1s', undefined],
    ['', undefined],
  ])('%j is %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
});
