/**
 * The key in a candidate's metadata for what vimeo/leaderelection calls connection parameters. For
 * clients of gRPC they are a service config, as JSON.
 */
export const parametersKey = 'connectionParameters';
/** The key for parameters that are bytes and no text. */
export const parametersBase64Key = 'connectionParameters;base64';
