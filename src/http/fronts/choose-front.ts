// Chooses the front of a process: uWebSockets.js, or node:http where uWebSockets.js has no binary (HTTP_FRONT).

import type { Front } from './front.ts';
import { loadUws } from './load-uws.ts';
import { NodeFront } from './node-front.ts';
import { UwsFront } from './uws-front.ts';

export type FrontName = 'uws' | 'node';
/** `auto`: node:http only where uWebSockets.js cannot be loaded. */
export type FrontSetting = FrontName | 'auto';

interface ChosenFront {
  readonly name: FrontName;
  /** Not listening yet. */
  readonly front: Front;
  /** Why uWebSockets.js could not be loaded and node:http stands in for it. */
  readonly missing: string | null;
}

/** uWebSockets.js is asked for and has no binary here; says what to do. */
export class FrontMissing extends Error {
  override readonly name = 'FrontMissing';

  constructor(cause: unknown) {
    const here = `${process.platform} ${process.arch} and Node ${process.version}`;
    const remedy = 'remove HTTP_FRONT, or set it to node (docs/install.md)';
    super(`HTTP_FRONT is uws, and uWebSockets.js has no binary for ${here}: ${remedy}`, { cause });
  }
}

const firstLineOf = (error: unknown): string => String((error as Error).message).split('\n')[0] ?? '';

/** Throws FrontMissing. */
export async function chooseFront(setting: FrontSetting): Promise<ChosenFront> {
  if (setting === 'node') return { name: 'node', front: new NodeFront(), missing: null };
  try {
    return { name: 'uws', front: new UwsFront(await loadUws()), missing: null };
  } catch (error) {
    if (setting === 'uws') throw new FrontMissing(error);
    return { name: 'node', front: new NodeFront(), missing: firstLineOf(error) };
  }
}
