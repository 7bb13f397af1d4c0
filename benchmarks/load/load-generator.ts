// The load generator's process: runs the jobs its parent sends and answers with their figures. One process, so that its
// CPU is never the proxy's.

import { holdStreams } from './hold-streams.ts';
import type { Job, JobResult, LoadCommand, LoadEvent } from './job.ts';
import { runClosedLoop } from './run-closed-loop.ts';
import { runFixedRate } from './run-fixed-rate.ts';

const releases = new Map<number, () => void>();

function tell(event: LoadEvent): void {
  process.send?.(event);
}

function run(id: number, job: Job): Promise<JobResult> {
  const onMeasuring = (): void => tell({ event: 'measuring', id });
  switch (job.kind) {
    case 'closed':
      return runClosedLoop(job, onMeasuring);
    case 'rate':
      return runFixedRate(job, onMeasuring);
    case 'hold':
      return holdStreams(job, onMeasuring, new Promise((resolve) => releases.set(id, resolve)));
  }
}

process.on('message', (command: LoadCommand) => {
  if (command.do === 'release') {
    releases.get(command.id)?.();
    releases.delete(command.id);
    return;
  }
  void run(command.id, command.job).then((result) => tell({ event: 'done', id: command.id, result }));
});
process.on('disconnect', () => process.exit(0));
tell({ event: 'ready' });
