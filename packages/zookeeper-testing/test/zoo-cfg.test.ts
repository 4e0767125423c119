import { expect, test } from 'vitest';
import { configOf, parseZooCfg, readZooCfg } from '../src/server/zoo-cfg.ts';

const production = `# The ensemble of a company
tickTime=2000
initLimit = 10
syncLimit: 5
dataDir=/var/lib/zookeeper
dataLogDir=/var/lib/zookeeper-log
clientPort=2181
secureClientPort=2281
admin.serverPort=8080
metricsProvider.httpPort=7000
ssl.keyStore.location=/etc/ssl/zookeeper.jks
4lw.commands.whitelist=ruok
! another comment
maxClientCnxns 17
autopurge.purgeInterval=\
    24
server.1=zk1:2888:3888
server.2=zk2:2888:3888:participant;2181
server.3=zk3:2888:3888
server.4=zk4:2888:3888:observer
`;

test('keeps what a file says of the behaviour, not of places, ports and certificates', () => {
  expect(parseZooCfg(production, 'zoo.cfg')).toEqual({
    servers: 3,
    settings: {
      ...{ tickTime: '2000', initLimit: '10', syncLimit: '5', maxClientCnxns: '17' },
      'autopurge.purgeInterval': '24',
    },
  });
});

test('a file without servers is of one that stands alone', () => {
  expect(parseZooCfg('tickTime=2000\r\nclientPort=2181\r\n', 'zoo.cfg')).toEqual({
    servers: undefined,
    settings: { tickTime: '2000' },
  });
});

test.each([
  ['group.1=1:2:3', 'quorums with groups or weights cannot be started'],
  ['weight.1=2', 'quorums with groups or weights cannot be started'],
  ['tickTime', 'there is no value: write tickTime=VALUE, or "#" in front'],
  ['=2000', 'there is no name in front of the "="'],
  ['tickTime=2s', 'tickTime must be a whole number'],
  ['initLimit=', 'initLimit must be a whole number'],
  ['localSessionsEnabled=yes', 'localSessionsEnabled must be true or false'],
  ['server.one=zk1:2888:3888', 'write server.N, and N is a number'],
  ['server.4=zk4:2888', 'a server is written as server.4=HOST:PORT:PORT'],
  ['server.1=zk4:2888:3888', 'server.1 is in line 2 already'],
])('%s is refused, with the file and the line', (line, why) => {
  const text = `# ours\nserver.1=zk1:2888:3888\nautopurge.purgeInterval=\\\n  24\n\n${line}\n`;
  expect(() => parseZooCfg(text, '/etc/zoo.cfg')).toThrow(
    new TypeError(`/etc/zoo.cfg, line 6: ${JSON.stringify(line)}: ${why}`),
  );
});

test('the addresses of servers may be IPv6, or several', () => {
  const text = 'server.1=[::1]:2888:3888\nserver.2=zk2:2888:3888|zk2b:2889:3889;2181';
  expect(parseZooCfg(text, 'config').servers).toBe(2);
});

test('the last line of a name wins, and a comment does not go on in the next line', () => {
  expect(parseZooCfg('tickTime=1\n# see \\\ntickTime = 2', 'config').settings).toEqual({
    tickTime: '2',
  });
});

test('a string with a "=" or a line break is the text, any other a path', async () => {
  expect((await readZooCfg('tickTime=2000')).settings).toEqual({ tickTime: '2000' });
  expect((await readZooCfg('tickTime 2000\n')).settings).toEqual({ tickTime: '2000' });
  await expect(readZooCfg('/nonexistent/zoo.cfg')).rejects.toThrow(
    /^config: there is no file "\/nonexistent\/zoo\.cfg"\. The text of a zoo\.cfg has a "=" or more/,
  );
  await expect(readZooCfg('tickTime')).rejects.toThrow('config: there is no file "tickTime"');
});

test('the file wins over the defaults of ZooKeeper, and options win over the file', () => {
  const file = parseZooCfg('tickTime=2000\nmaxSessionTimeout=30000\ninitLimit=10', 'zoo.cfg');
  expect(configOf(file, {})).toEqual({
    ...{ tickTime: '2000', maxSessionTimeout: '30000', initLimit: '10' },
    ...{ minSessionTimeout: -1, maxClientCnxns: 60, extendedTypesEnabled: false },
  });
  expect(configOf(file, { tickTimeMs: 100, localSessions: true })).toMatchObject({
    ...{ tickTime: 100, localSessionsEnabled: true, initLimit: '10', maxSessionTimeout: '30000' },
  });
});
