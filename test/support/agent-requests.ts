// Loads the requests of coding agents that were recorded in the shared assets beside the repository.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sharedAssets } from './shared-assets.ts';

export interface AgentRequest {
  /** The file name of the recording. */
  readonly name: string;
  /** Path and query. */
  readonly url: string;
  readonly body: AgentBody;
}

interface AgentBody {
  readonly model?: string;
  readonly stream?: boolean;
}

interface AgentFile extends AgentBody {
  readonly url?: string;
  readonly body?: AgentBody | null;
}

/** Empty if the recordings are not there. */
export function agentRequests(): AgentRequest[] {
  const folder = sharedAssets('agents');
  if (folder === null) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => {
      const file = JSON.parse(readFileSync(join(folder, name), 'utf8')) as AgentFile;
      // One file contains only the body of a Messages request.
      const body = file.model === undefined ? file.body : file;
      return body === undefined || body === null ? [] : [{ name, url: file.url ?? '/v1/messages', body }];
    });
}
