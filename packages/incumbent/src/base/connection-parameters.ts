/**
 * Where a candidate's metadata has what vimeo/leaderelection calls connection parameters: to clients
 * of gRPC a service config, as JSON.
 */
export const parametersKey = 'connectionParameters';
/** In its place for bytes that are no text. */
export const parametersBase64Key = 'connectionParameters;base64';
