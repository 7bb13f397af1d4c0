// Finds a port of this machine on which nobody listens, outside the range from which the system assigns ports: clients
// get those ports, so one that is free now may be a client's port a moment later.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** Linux assigns ports above this range (from 32768), and well-known services use ports below it. */
const FIRST_PORT = 15_000;
const END_PORT = 32_000;
const TRIES_MAX = 100;
/**
 * More ports than a process needs, so that processes with neighbouring ids use different ports; coprime to the number
 * of ports.
 */
const PORTS_OF_PROCESS = 251;

/** Ports are used in sequence: random ports would now and then be the same before anybody listens on the first. */
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
