// Opens the front and the port of a gateway process, with a bound on what the operating system holds of each
// connection.

import { chooseFront, FrontMissing, type FrontSetting } from '../http/fronts/choose-front.ts';
import type { Front } from '../http/fronts/front.ts';
import { boundReceiveBuffers } from '../http/receive-buffer.ts';
import type { Server } from '../http/server.ts';
import { StartFault } from '../installation/start-fault.ts';
import type { Log } from '../platform/log.ts';

/**
 * Makes the front, which does not listen yet. Throws StartFault where HTTP_FRONT asks for a front that is not
 * available.
 */
export async function openFront(setting: FrontSetting, log: Log): Promise<Front> {
  const { front, missing } = await chooseFront(setting).catch((error: unknown) => {
    throw error instanceof FrontMissing ? new StartFault(error.message, { cause: error }) : error;
  });
  if (missing !== null) log.warn({ missing }, 'uWebSockets.js has no binary here: node:http serves');
  return front;
}

/**
 * Resolves once the port is open. Connections that come in the few milliseconds before the bound is set do not have it.
 */
export async function listen(server: Server, host: string, port: number, log: Log): Promise<void> {
  await server.listen(host, port);
  if (!(await boundReceiveBuffers(port)) && process.platform === 'linux')
    log.warn('receive buffers could not be bounded: large bodies take as much memory as the system lets come at once');
}
