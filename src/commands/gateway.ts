// `tollgate gateway`: one process that serves the public address.

import type { Serving } from '../supervisor/process-lifecycle.ts';
import type { Command } from './command/command.ts';
import { type ProcessParts, serveProcess } from './command/serve-process.ts';

export const gatewayCommand: Command = {
  usage: ['tollgate gateway'],
  summary: 'Runs one gateway process alone (systemd, Kubernetes); several share HOST:PORT.',
  run: (args, context) => serveProcess({ name: 'gateway', outlastsGateways: false, start }, args, context),
};

/** Imported here and not at the top, so that --help and other commands do not load it. */
async function start(parts: ProcessParts): Promise<Serving> {
  const { runGateway } = await import('../gateway/run-gateway.ts');
  return runGateway(parts);
}
