// What the OpenAPI document promises, asked by a program that knows nothing else: schemathesis makes requests from it,
// right and wrong ones, as the platform, an organization's owner, a member, a key and nobody. By hand:
//
//   pip install schemathesis
//   node test/contract/schemathesis-run.ts --seconds 600 --seed 1 [--as owner] [--schemathesis PATH]
//
// Exits with 1 after a 500, after a status or content type that the document does not name for its operation, or a body
// that is not what it says. Whatever leaves the gateway goes to a proxy that is not there.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startFront } from '../support/front.ts';
import { NOWHERE } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, Tenant } from '../support/identity-world.ts';
import { startSimulatedProvider } from '../support/simulated-provider.ts';
import { testConfiguration } from '../support/test-configuration.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: '1' },
    as: { type: 'string', multiple: true, default: [] },
    schemathesis: { type: 'string', default: 'schemathesis' },
  },
});
const CHECKS = ['status_code_conformance', 'content_type_conformance', 'response_schema_conformance'];

const provider = await startSimulatedProvider();
const tollgate = await startFront({
  configurationYaml: testConfiguration({ upstreamUrl: provider.url }),
  env: { ADMIN_TOKEN, HTTP_PROXY: NOWHERE, HTTPS_PROXY: NOWHERE, NO_PROXY: '127.0.0.1', MEDIA: 'disk' },
  reports: true,
});
const faults: string[] = [];
const directory = mkdtempSync(join(tmpdir(), 'tollgate-document-'));
const document = join(directory, 'openapi.json');
try {
  const { body } = await httpCall(`${tollgate.url}/openapi.json`);
  // Python's patterns know no classes of Unicode, and schemathesis makes nothing for what has one.
  writeFileSync(document, body.toString('utf8').replaceAll(String.raw`[^\\p{C}\\p{Zl}\\p{Zp}]`, '[ -~]'));
  const tenant = await Tenant.create(tollgate.url, 'documented');
  const credentials: Readonly<Record<string, string>> = {
    platform: ADMIN_TOKEN,
    owner: tenant.owner.token,
    member: (await tenant.addPerson('member')).token,
    key: (await tenant.addKey()).secret,
    nobody: '',
  };
  const roles = values.as.length === 0 ? Object.keys(credentials) : values.as;
  for (const role of roles) {
    console.log(`== as ${role}`);
    const credential = credentials[role];
    if (credential === undefined) throw new Error(`nobody is called ${role}: ${Object.keys(credentials).join(', ')}`);
    const logged = tollgate.output().length;
    const asked = spawn(
      values.schemathesis,
      [
        'run',
        document,
        `--url=${tollgate.url}`,
        ...(credential === '' ? [] : [`--header=Authorization: Bearer ${credential}`]),
        `--checks=${CHECKS.join(',')}`,
        `--seed=${values.seed}`,
        `--max-time=${Math.ceil(Number(values.seconds) / roles.length)}`,
        '--continue-on-failure',
        '--no-shrink',
        '--request-timeout=30',
        '--suppress-health-check=all',
        '--warnings=off',
        '--output-truncate=false',
      ],
      // What it remembers of a run goes with the directory.
      { cwd: directory, stdio: ['ignore', 'inherit', 'inherit'] },
    );
    const [code] = await once(asked, 'exit');
    if (code !== 0) faults.push(`as ${role}: schemathesis ended with ${code}`);
    // What is answered with 500 is logged with the fault.
    for (const line of tollgate.output().slice(logged).split('\n'))
      if (/"level":(50|60)|"level":"(error|fatal)"/.test(line)) faults.push(`as ${role}: ${line.slice(0, 2_000)}`);
  }
} finally {
  await tollgate.stop();
  await provider.stop();
  rmSync(directory, { recursive: true });
}
for (const fault of new Set(faults)) console.log(fault);
console.log(faults.length === 0 ? 'as documented' : `${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
