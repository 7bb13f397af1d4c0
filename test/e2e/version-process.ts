// One process of one version, started alone as a service manager does: `tollgate jobs` or `tollgate gateway` of a
// checkout.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { httpCall } from '../support/http-call.ts';
import { waitFor } from '../support/waiting.ts';

/** How long anything may take on a busy machine before it counts as stuck. */
const STUCK_MS = 120_000;

export interface VersionProcessOptions {
  readonly checkout: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly adminPort: number;
}

export class VersionProcess {
  readonly options: VersionProcessOptions;
  readonly adminUrl: string;
  /** All that it printed. */
  output = '';
  private readonly child: ChildProcess;
  private readonly closed: Promise<unknown>;

  constructor(options: VersionProcessOptions) {
    const { checkout, args, env, adminPort } = options;
    this.options = options;
    this.adminUrl = `http://127.0.0.1:${adminPort}`;
    this.child = spawn(process.execPath, [join(checkout, 'src/main.ts'), ...args], {
      env: { ...process.env, ...env, ADMIN_PORT: String(adminPort) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.closed = once(this.child, 'close');
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.output += chunk.toString();
        if (process.env['TOLLGATE_TEST_OUTPUT'] !== undefined) process.stderr.write(chunk);
      });
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Whether it came to serve; false: it has ended instead. */
  async serves(): Promise<boolean> {
    const status = await waitFor(
      `${this.options.args.join(' ')} of ${this.options.checkout} to serve`,
      async () => {
        if (this.hasEnded) return 'ended';
        return (await httpCall(`${this.adminUrl}/readyz`).catch(() => null))?.status ?? null;
      },
      (found) => found === 200 || found === 'ended',
      STUCK_MS,
    );
    return status === 200;
  }

  async becomeReady(): Promise<this> {
    if (!(await this.serves())) throw new Error(`it does not start:\n${this.output.slice(-2_000)}`);
    return this;
  }

  /** By SIGTERM, in its own time; or at once. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (!this.hasEnded) this.child.kill(signal);
    await this.closed;
  }

  /** Until it has ended by itself. */
  async ended(): Promise<void> {
    await this.closed;
  }
}
