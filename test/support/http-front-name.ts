// Names the HTTP front of the servers in this run: `HTTP_FRONT=node` runs a suite over node:http instead of
// uWebSockets.js.

import { chooseFront } from '../../src/http/fronts/choose-front.ts';
import type { Front } from '../../src/http/fronts/front.ts';

export const HTTP_FRONT = process.env['HTTP_FRONT'] === 'node' ? 'node' : 'uws';

export async function frontOfThisRun(): Promise<Front> {
  return (await chooseFront(HTTP_FRONT)).front;
}
