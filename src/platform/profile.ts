// Takes profiles of this process in the form that browsers' tools open: where its CPU time goes, and what allocates its
// memory. Neither has contents of memory, which would show keys in clear.

import { Session } from 'node:inspector/promises';

export const PROFILE_KINDS = ['cpu', 'heap'] as const;
export type ProfileKind = (typeof PROFILE_KINDS)[number];

/** The heap profile samples one byte in so many of those that are allocated. */
const HEAP_SAMPLE_BYTES = 65_536;
let isTaking = false;

/** A .cpuprofile or .heapprofile; null: another one is being taken. */
export async function takeProfile(kind: ProfileKind, seconds: number): Promise<string | null> {
  if (isTaking) return null;
  isTaking = true;
  const session = new Session();
  session.connect();
  try {
    return JSON.stringify(await (kind === 'cpu' ? cpuProfile(session, seconds) : heapProfile(session, seconds)));
  } finally {
    session.disconnect();
    isTaking = false;
  }
}

async function cpuProfile(session: Session, seconds: number): Promise<object> {
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  await pass(seconds);
  return (await session.post('Profiler.stop')).profile;
}

async function heapProfile(session: Session, seconds: number): Promise<object> {
  await session.post('HeapProfiler.startSampling', { samplingInterval: HEAP_SAMPLE_BYTES });
  await pass(seconds);
  return (await session.post('HeapProfiler.stopSampling')).profile;
}

function pass(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}
