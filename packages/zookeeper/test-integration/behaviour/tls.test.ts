import { startServer } from '@incumbent/zookeeper-testing';
import { behaviour } from './suite.ts';

behaviour({
  name: 'a server that demands certificates',
  capabilities: { tls: true, subject: 'CN=client', dynamicConfig: false },
  async open() {
    const server = await startServer({
      tls: { clientAuth: 'need' },
      systemProperties: { 'znode.container.checkIntervalMs': 200 },
    });
    const { certificates, secureConnectionString, securePort } = server;
    if (!certificates || !secureConnectionString || !securePort) throw new Error('no TLS');
    const { key, certificate } = certificates.client;
    return {
      url: secureConnectionString,
      port: securePort,
      options: { tls: { ca: certificates.ca.text, key: key.text, cert: certificate.text } },
      elapse: () => Promise.resolve(),
      close: () => server.close(),
    };
  },
});
