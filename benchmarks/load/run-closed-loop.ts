// Closed loop: a fixed number of clients, each sending its next request when its last reply is complete.

import { setTimeout as sleep } from 'node:timers/promises';
import { Client, requestBytes } from './client.ts';
import type { ClosedLoopJob, JobResult } from './job.ts';
import { Recorder } from './recorder.ts';

export async function runClosedLoop(job: ClosedLoopJob, onMeasuring: () => void): Promise<JobResult> {
  const recorder = new Recorder();
  const request = requestBytes(job.target);
  const again = (client: Client): void => {
    if (job.thinkMs === 0) client.send(performance.now());
    else setTimeout(() => client.send(performance.now()), job.thinkMs);
  };
  const clients = Array.from({ length: job.connections }, () => new Client(job.target, request, recorder, again));
  await sleep(job.warmupMs);
  recorder.start();
  onMeasuring();
  await sleep(job.durationMs);
  recorder.stop();
  for (const client of clients) client.close();
  return recorder.result();
}
