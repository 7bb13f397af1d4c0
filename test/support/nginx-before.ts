// Starts nginx in front of a test's servers, as a proxy that does not buffer bodies. It adds an id to every request
// that it forwards, so a call with no id, or with one that came before, was smuggled.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from './free-port.ts';
import { httpCall } from './http-call.ts';
import { waitFor } from './waiting.ts';

/** The header with nginx's id. */
export const HOP_HEADER = 'x-hop';

export interface NginxBefore {
  /** One port for each server, in the same order. */
  readonly ports: readonly number[];
  stop(): Promise<void>;
}

/** `ports`: those of the servers behind it. Resolves when each one answers through nginx, with any status below 500. */
export async function startNginxBefore(ports: readonly number[]): Promise<NginxBefore> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-nginx-'));
  const own = await Promise.all(ports.map(() => findFreePort()));
  const servers = ports.map(
    (port, index) => `
  upstream behind${index} { server 127.0.0.1:${port}; keepalive 64; keepalive_requests 100000; }
  server {
    listen 127.0.0.1:${own[index]} backlog=1024;
    location / {
      proxy_pass http://behind${index};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Hop $request_id;
      proxy_request_buffering off;
      proxy_next_upstream off;
    }
  }`,
  );
  const path = join(directory, 'nginx.conf');
  writeFileSync(
    path,
    `daemon off; master_process off; pid ${directory}/nginx.pid; error_log ${directory}/error.log crit;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path ${directory}/body; proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/f; uwsgi_temp_path ${directory}/u; scgi_temp_path ${directory}/s;
  ${servers.join('')}
}`,
  );
  const nginx = spawn('nginx', ['-p', directory, '-c', path], { stdio: 'inherit' });
  const exited = once(nginx, 'exit');
  const isServed = async (port: number): Promise<boolean> =>
    httpCall(`http://127.0.0.1:${port}/nginx-is-there`).then(
      ({ status }) => status < 500,
      () => false,
    );
  for (const port of own) await waitFor('nginx', () => isServed(port), Boolean);
  return {
    ports: own,
    async stop() {
      nginx.kill('SIGQUIT');
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
