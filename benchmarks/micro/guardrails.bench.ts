// What the scan of a text costs: prose, code and hostile texts, with twelve detectors, and with custom patterns beside
// them. Prints nanoseconds; benchmarks/README.md says how to run it.

import { Buffer } from 'node:buffer';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CompiledPolicy, compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import { ENTITY_NAMES } from '../../src/domain/guardrails/entities.ts';
import type { Finding } from '../../src/domain/guardrails/finding.ts';
import { holdFrom } from '../../src/domain/guardrails/hold-from.ts';
import type { Rule } from '../../src/domain/guardrails/policy.ts';
import { scanText } from '../../src/domain/guardrails/scan-text.ts';
import { HOSTILE_TEXTS, hostileText } from '../../test/support/hostile-texts.ts';
import { measureNs } from './measure-ns.ts';

const TWELVE = [
  'email',
  'card',
  'iban',
  'phone',
  'us_ssn',
  'api_key',
  'jwt',
  'private_key',
  'url_password',
  'wallet_key',
  'uk_nhs',
  'in_aadhaar',
] as const;

function policyOf(rule: Partial<Rule>): CompiledPolicy {
  const rules: Rule[] = [
    {
      policy: 'bench',
      version: 1,
      id: 'all',
      action: 'mask',
      stages: ['input', 'output'],
      apis: null,
      label: null,
      cloak: { form: 'token', scope: 'organization', restore: true },
      detect: [],
      words: [],
      patterns: [],
      external: null,
      ...rule,
    },
  ];
  const policy = { id: 'bench', name: 'bench', version: 1, organizationId: null, onFailure: 'refuse' as const, rules };
  const compiled = compilePolicy(
    [{ ...policy, allowedValues: [], allowedEmailDomains: [], externals: [] }],
    'chat_completions',
  );
  if (compiled === null) throw new Error('no rule');
  return compiled;
}

const twelve = policyOf({ detect: TWELVE });
const everything = policyOf({ detect: ENTITY_NAMES });
const patterns = policyOf({
  detect: TWELVE,
  patterns: Array.from({ length: 40 }, (_, index) => ({ regex: `ACME-${index}-[0-9]{6}`, maxLength: 16 })),
});

/** The repository's own documents or sources, repeated: prose or code as requests contain it. */
function textOf(directory: string, ending: string, bytes: number): Buffer {
  const root = new URL(`../../${directory}/`, import.meta.url).pathname;
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(ending));
  const all = Buffer.concat(files.sort().map((name) => readFileSync(join(root, name))));
  return Buffer.concat(Array.from({ length: Math.ceil(bytes / all.length) }, () => all)).subarray(0, bytes);
}

const MEGABYTE = 1_048_576;
const prose = textOf('docs', '.md', MEGABYTE);
const code = textOf('src', '.ts', MEGABYTE);
function scan(compiled: CompiledPolicy, bytes: Buffer): number {
  const findings: Finding[] = [];
  scanText(compiled, 'input', bytes, 0, bytes.length, findings);
  return findings.length;
}

function print(name: string, compiled: CompiledPolicy, bytes: Buffer): void {
  measureNs(name, () => scan(compiled, bytes));
}

for (const [name, text] of [
  ['prose', prose],
  ['code', code],
] as const) {
  for (const [size, bytes] of [
    ['4 KB', 4_096],
    ['100 KB', 102_400],
    ['1 MB', MEGABYTE],
  ] as const) {
    print(`${size} of ${name}, 12 detectors`, twelve, text.subarray(0, bytes));
  }
  print(`4 KB of ${name}, every detector`, everything, text.subarray(0, 4_096));
  print(`4 KB of ${name}, 12 detectors, 40 patterns`, patterns, text.subarray(0, 4_096));
}
for (const name of HOSTILE_TEXTS) print(`1 MB of ${name}`, everything, hostileText(name, MEGABYTE));

/**
 * A thousand deltas of a stream, four bytes each: each is scanned with the waiting text, of which a new part then
 * waits.
 */
measureNs('1,000 deltas of 4 bytes, 12 detectors', () => {
  const findings: Finding[] = [];
  let from = 0;
  for (let end = 4; end <= 4_000; end += 4) {
    findings.length = 0;
    scanText(twelve, 'output', prose, from, end, findings);
    from = holdFrom(twelve, 'output', prose, from, end, findings);
  }
  return from;
});
