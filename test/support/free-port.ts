// A port of this machine that nobody listens on. Not one that the system gives out by itself: whoever connects gets
// those, too, and one that is free now may be the near end of somebody's connection a moment later.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below them begin the ports that Linux gives out (32768), above them end those of well-known services. */
const FIRST_PORT = 15_000;
const END_PORT = 32_000;
const TRIES_MAX = 100;
/** More than a process asks for, so that those beside it ask for others; prime to the number of ports. */
const PORTS_OF_PROCESS = 251;

/**
 * One after the other: of ports that are drawn, two are now and then the same before anybody listens on the first.
 */
let next = (process.pid * PORTS_OF_PROCESS) % (END_PORT - FIRST_PORT);

export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = FIRST_PORT + next;
    next = (next + 1) % (END_PORT - FIRST_PORT);
    if (await isFree(port)) return port;
  }
  throw new Error(`no port is free between ${FIRST_PORT} and ${END_PORT}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
