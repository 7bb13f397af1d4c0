// Finds a port of this machine on which nobody listens, outside the range from which the system assigns ports: clients
// get those ports, so one that is free now may be a client's port a moment later.
//
// An installation listens seconds after its port was found, and gateways share a port with whoever has it already
// (SO_REUSEPORT). Two processes that found the same port would therefore get each other's requests, so a port is also
// claimed: this process keeps the UDP port of the same number until it ends.

import { createSocket } from 'node:dgram';
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
    if ((await claim(port)) && (await isFree(port))) return port;
  }
  throw new Error(`no port is free between ${FIRST_PORT} and ${END_PORT}`);
}

/** False if another process has claimed the port. The system gives the claim up with this process. */
async function claim(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind({ port, address: '127.0.0.1', exclusive: true });
    await once(socket, 'listening');
  } catch {
    socket.close();
    return false;
  }
  socket.unref();
  return true;
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
