import { startServer } from '../../src/testing/server/server.ts';
import { behaviour } from './suite.ts';

behaviour({
  name: 'a server that demands certificates',
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
      capabilities: {
        tls: true,
        subject: 'CN=client',
        ensemble: false,
        realClock: true,
        dynamicConfig: false,
      },
      elapse: () => Promise.resolve(),
      close: () => server.close(),
    };
  },
});
