// Which front a process has.

import type { Front } from './front.ts';
import { loadUws } from './load-uws.ts';
import { UwsFront } from './uws-front.ts';

export async function chooseFront(): Promise<Front> {
  return new UwsFront(await loadUws());
}
