import { expect, test } from 'vitest';
import { configOf, parseZooCfg } from '../src/server/zoo-cfg.ts';

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

test.each(['group.1=1:2:3', 'weight.1=2'])('%s is refused, with the file', (line) => {
  expect(() => parseZooCfg(line, '/etc/zoo.cfg')).toThrow(/^\/etc\/zoo\.cfg has (group|weight)\.1/);
});

test('the file wins over the defaults of ZooKeeper, and options win over the file', () => {
  const file = parseZooCfg('tickTime=2000\nmaxSessionTimeout=30000\ninitLimit=10', 'zoo.cfg');
  expect(configOf(file, {})).toEqual({
    ...{ tickTime: '2000', maxSessionTimeout: '30000', initLimit: '10' },
    ...{ minSessionTimeout: -1, maxClientCnxns: 60, extendedTypesEnabled: false },
  });
  const options = { tickTimeMs: 100, localSessions: true, config: { initLimit: 3 } };
  expect(configOf(file, options)).toMatchObject({
    ...{ tickTime: 100, localSessionsEnabled: true, initLimit: 3, maxSessionTimeout: '30000' },
  });
});
