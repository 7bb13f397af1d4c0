// Fixed rate: requests leave when the schedule says so, whatever happened to the ones before, and latency counts from
// the schedule.

import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Client, requestBytes } from './client.ts';
import type { FixedRateJob, JobResult } from './job.ts';
import { Recorder } from './recorder.ts';

/**
 * A client is added when a request is due and all clients are busy. Beyond this number the proxy counts as not
 * answering.
 */
const CLIENTS_MAX = 4096;

export async function runFixedRate(job: FixedRateJob, onMeasuring: () => void): Promise<JobResult> {
  const recorder = new Recorder();
  const request = requestBytes(job.target);
  const idle: Client[] = [];
  const clients: Client[] = [];
  /** Scheduled times of requests that found no idle client. */
  const waiting: number[] = [];
  const onIdle = (client: Client): void => {
    const scheduledMs = waiting.shift();
    if (scheduledMs === undefined) idle.push(client);
    else client.send(scheduledMs);
  };
  const addClient = (): void => {
    clients.push(new Client(job.target, request, recorder, onIdle));
  };
  for (let i = 0; i < 64; i++) addClient();
  await sleep(100);

  const sendAt = (scheduledMs: number): void => {
    const client = idle.pop();
    if (client !== undefined) {
      client.send(scheduledMs);
    } else if (clients.length < CLIENTS_MAX) {
      waiting.push(scheduledMs);
      addClient();
    } else {
      recorder.error('no client left: the proxy does not keep up');
    }
  };
  const pacer = startPacer(1000 / job.requestsPerSecond, sendAt);
  await sleep(job.warmupMs);
  recorder.start();
  onMeasuring();
  await sleep(job.durationMs);
  recorder.stop();
  await pacer.terminate();
  for (const client of clients) client.close();
  return recorder.result();
}

/**
 * Starts the thread that calls `onDue` at each scheduled time. Timers of the event loop have whole milliseconds, which
 * is too coarse: the thread sleeps on a futex, wakes this one and passes the scheduled time.
 */
function startPacer(intervalMs: number, onDue: (scheduledMs: number) => void): Worker {
  const pacer = new Worker(new URL('./pacer.ts', import.meta.url), { workerData: { intervalMs } });
  // A worker's clock counts from its own start, so the difference is measured once, on the clock that both can read.
  const offsetMs = performance.now() - Number(process.hrtime.bigint()) / 1e6;
  pacer.on('message', (scheduledMonotonicMs: number) => onDue(scheduledMonotonicMs + offsetMs));
  return pacer;
}
