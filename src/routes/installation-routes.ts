// The rows of the route table about the installation itself: its jobs, its processes and their epochs, and the drift
// that was found.

import * as jobs from '../control-plane/installation/jobs.ts';
import { listProcesses, showLive } from '../control-plane/installation/processes.ts';
import { type ControlPlaneRow, PLATFORM_ADMIN, row } from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

const JOBS_PATH = '/v1/admin/jobs';

export function installationRows({ installation }: RouteParts): ControlPlaneRow[] {
  return [
    row('GET', JOBS_PATH, PLATFORM_ADMIN, jobs.listJobs(installation)),
    row('POST', `${JOBS_PATH}/:jobName/runs`, PLATFORM_ADMIN, jobs.runJob(installation)),
    row('GET', `${JOBS_PATH}/:jobName/runs/:runNumber`, PLATFORM_ADMIN, jobs.getJobRun(installation)),
    row('GET', '/v1/admin/epochs', PLATFORM_ADMIN, jobs.listEpochs(installation)),
    row('GET', '/v1/admin/processes', PLATFORM_ADMIN, listProcesses(installation)),
    row('GET', '/v1/admin/live', PLATFORM_ADMIN, showLive(installation)),
    row('GET', '/v1/admin/drift', PLATFORM_ADMIN, jobs.getDrift(installation)),
  ];
}
