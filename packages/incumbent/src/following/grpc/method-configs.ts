/**
 * What the service config says of each call. grpc-js has this too, but parses `waitForReady` and then
 * asks only the metadata of the call: with its own choice a service config could not make calls wait.
 */
import type { ConfigSelector } from './module.ts';
import type { MethodConfig } from './service-config.ts';

const none: MethodConfig = { name: [] };

export function selectMethodConfig(methodConfig: readonly MethodConfig[]): ConfigSelector {
  // parseServiceConfig has seen to it that no name is there twice.
  const byName = new Map(
    methodConfig.flatMap((each) =>
      each.name.map(({ service = '', method = '' }) => [`${service}/${method}`, each] as const),
    ),
  );
  return {
    invoke(path, metadata) {
      const [service = '', method = ''] = path.split('/').filter((part) => part !== '');
      const config =
        byName.get(`${service}/${method}`) ?? byName.get(`${service}/`) ?? byName.get('/') ?? none;
      const options = metadata.getOptions();
      // What the caller says of one call counts more. The metadata is gRPC's copy, its options are not.
      if (config.waitForReady !== undefined && options.waitForReady === undefined) {
        metadata.setOptions({ ...options, waitForReady: config.waitForReady });
      }
      return { methodConfig: config, pickInformation: {}, status: 0, dynamicFilterFactories: [] };
    },
    unref() {},
  };
}
