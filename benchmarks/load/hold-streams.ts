// Opens many streams and leaves them open, so that a proxy can be measured with them in the background.

import { setTimeout as sleep } from 'node:timers/promises';
import { Client, requestBytes } from './client.ts';
import type { HoldStreamsJob, JobResult } from './job.ts';
import { Recorder } from './recorder.ts';

/** Streams are opened in groups, so that the listen queue is never what is measured. */
const OPENED_AT_ONCE = 50;
const OPEN_TIMEOUT_MS = 60_000;

export async function holdStreams(
  job: HoldStreamsJob,
  onOpen: () => void,
  released: Promise<void>,
): Promise<JobResult> {
  const recorder = new Recorder();
  const request = requestBytes(job.target);
  let sent = 0;
  const clients: Client[] = [];
  const startedAtMs = performance.now();
  recorder.start();
  while (clients.length < job.streams) {
    for (let i = 0; i < OPENED_AT_ONCE && clients.length < job.streams; i++) {
      clients.push(
        new Client(job.target, request, recorder, (client) => {
          sent++;
          client.send(performance.now());
        }),
      );
    }
    while (sent < clients.length && performance.now() - startedAtMs < OPEN_TIMEOUT_MS) await sleep(1);
  }
  // The first event of a stream shows that it is open on both sides.
  while (recorder.result().events < job.streams && performance.now() - startedAtMs < OPEN_TIMEOUT_MS) await sleep(20);
  if (recorder.result().events < job.streams)
    recorder.error(`only ${recorder.result().events} of ${job.streams} streams opened`);
  onOpen();
  await released;
  recorder.stop();
  for (const client of clients) client.close();
  return recorder.result();
}
