// What watches an installation, before a real Prometheus: metrics as conventions want them, alerts that fire on what
// they are for, and dashboards of which every expression has data after a load whose figures are known.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { DASHBOARDS, renderDashboard } from '../../build/write-dashboards.ts';
import { endAll } from '../support/end-all.ts';
import { findFreePort } from '../support/free-port.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { needs } from '../support/programs.ts';
import { type SimulatedProvider, startSimulatedProvider } from '../support/simulated-provider.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { pause, waitFor } from '../support/waiting.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RULES = join(ROOT, 'deploy/prometheus/tollgate-rules.yaml');
const REQUESTS = 24;

interface Rules {
  readonly groups: readonly { readonly rules: readonly { alert: string; expr: string; annotations: Labels }[] }[];
}
type Labels = Readonly<Record<string, string>>;
interface Sample {
  readonly metric: Labels;
  readonly value: readonly [number, string];
}

const alerts = (parse(readFileSync(RULES, 'utf8')) as Rules).groups.flatMap(({ rules }) => rules);
const { tests: cases } = parse(readFileSync(RULES.replace('.yaml', '.test.yaml'), 'utf8')) as {
  tests: readonly { name: string; input_series: readonly { series: string }[] }[];
};
const expressions = DASHBOARDS.flatMap(({ panels }) => panels).flatMap(({ title, lines }) =>
  lines.map(([expression]) => ({ title, expression })),
);

describe('files of dashboards and alerts', () => {
  test('dashboards are as build/write-dashboards.ts writes them', () => {
    for (const dashboard of DASHBOARDS) {
      const file = join(ROOT, `deploy/grafana/dashboards/${dashboard.id}.json`);
      assert.equal(readFileSync(file, 'utf8'), renderDashboard(dashboard), 'run: node build/write-dashboards.ts');
    }
  });

  test('the chart has a copy of the alerts: what Helm packs lies within the chart', () => {
    const copy = join(ROOT, 'deploy/helm/tollgate/files/tollgate-rules.yaml');
    assert.equal(readFileSync(copy, 'utf8'), readFileSync(RULES, 'utf8'));
  });

  test('each alert has a paragraph in the runbook and a case of its own', () => {
    const headings = [...readFileSync(join(ROOT, 'docs/runbook.md'), 'utf8').matchAll(/^## (\w+)$/gm)].map(
      ([, name]) => name,
    );
    const names = alerts.map(({ alert }) => alert);
    assert.deepEqual(
      headings.filter((name) => name?.startsWith('Tollgate')),
      names,
    );
    assert.deepEqual(
      cases.map(({ name }) => name),
      names,
    );
    for (const { alert, annotations } of alerts)
      assert.equal(annotations['runbook'], `docs/runbook.md#${alert.toLowerCase()}`);
  });

  test('the series of the cases have the job and the instance of a target, as after every scrape', () => {
    for (const { series } of cases.flatMap((one) => one.input_series))
      assert.match(series, /^\w+\{.*\bjob="tollgate",instance="\w+"\}$/);
  });

  test('every metric that they name is one that the product has', () => {
    const product = globSync(['src/**/*.ts', 'jobs/**/*.ts'], { cwd: ROOT }).map((path) =>
      readFileSync(join(ROOT, path), 'utf8'),
    );
    const asked = [...expressions.map(({ expression }) => expression), ...alerts.map(({ expr }) => expr)].join(' ');
    for (const [name] of asked.matchAll(/\btollgate_\w+/g)) {
      const family = name.replace(/_(bucket|count|sum)$/, '');
      assert.ok(
        product.some((text) => text.includes(`'${family}'`)),
        name,
      );
    }
  });

  test('promtool finds each alert firing on what it is for', needs('promtool'), async () => {
    await run('promtool', ['check', 'rules', RULES]);
    await run('promtool', ['test', 'rules', RULES.replace('.yaml', '.test.yaml')]);
  });
});

describe('a real Prometheus', needs('prometheus', 'promtool'), () => {
  let provider: SimulatedProvider;
  let tollgate: Tollgate;
  let url = '';
  const ends: (() => unknown)[] = [];

  before(async () => {
    provider = await startSimulatedProvider();
    ends.push(() => provider.stop());
    tollgate = await startTollgate({
      configurationYaml: readFileSync(join(ROOT, 'deploy/demo.yaml'), 'utf8'),
      env: { SIMULATED_PROVIDER_URL: provider.url },
    });
    ends.push(() => tollgate.stop());
    url = await startPrometheus();
    await load();
  });
  after(async () => {
    await endAll(ends);
  });

  test('finds nothing against the conventions', async () => {
    const metrics = (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString();
    const check = run('promtool', ['check', 'metrics']);
    check.child.stdin?.end(metrics);
    const { stdout, stderr } = await check;
    assert.equal(stdout + stderr, '');
    const helps = [...metrics.matchAll(/^# HELP (\S+) (.*)$/gm)];
    assert.ok(helps.length > 60, `${helps.length} families`);
    for (const [, name = '', help = ''] of helps) assert.ok(help.length > 10, name);
    assert.doesNotMatch(metrics, /tg-[\w-]{20}|@\w+\.\w+/, 'neither keys nor persons');
  });

  test('has data for every expression of every dashboard', async () => {
    const empty: string[] = [];
    for (const { title, expression } of expressions) {
      const samples = await ask(expression.replaceAll('$__rate_interval', '1m'));
      if (samples.every(({ value }) => value[1] === 'NaN')) empty.push(`${title}: ${expression}`);
    }
    assert.deepEqual(empty, []);
  });

  test('evaluates every alert without a fault, and none fires but what was done on purpose', async () => {
    interface RuleAnswer {
      readonly data: {
        readonly groups: readonly { readonly rules: readonly { name: string; health: string; lastError?: string }[] }[];
      };
    }
    const rules = await waitFor(
      'the rules to be evaluated',
      async () => {
        const answer = JSON.parse((await httpCall(`${url}/api/v1/rules`)).body.toString()) as RuleAnswer;
        return answer.data.groups.flatMap((group) => group.rules);
      },
      (all) => all.length === alerts.length && all.every(({ health }) => health !== 'unknown'),
    );
    assert.deepEqual(
      rules.filter(({ health }) => health !== 'ok'),
      [],
    );
    const firing = await ask('ALERTS{alertstate="firing"}');
    assert.deepEqual(
      firing.map(({ metric }) => metric['alertname']),
      [],
    );
  });

  test('counts what was sent', async () => {
    const figure = async (expression: string) => Number((await ask(expression))[0]?.value[1]);
    assert.equal(await figure('sum(tollgate_requests_total{status_class="2xx"})'), REQUESTS * 2);
    assert.equal(await figure('tollgate_refusals_total{code="authentication_required"}'), 1);
    assert.ok(provider.starts().length >= REQUESTS * 2);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    assert.equal(await figure(`tollgate_build_info{version="${version}"}`), 1);
  });

  test('every family is what the load makes of it, or one that says how the machine does', async () => {
    const expected = afterTheLoad(await listRequests(), provider.starts().length - REQUESTS * 2);
    const metrics = (await httpCall(`${tollgate.adminUrl}/metrics`)).body.toString();
    const wrong: string[] = [];
    for (const [, name = '', type] of metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      const figure = expected[name] ?? 0;
      if (figure === 'of the machine') continue;
      const series = type === 'histogram' ? `${name}_count` : name;
      const value = Number((await ask(`sum(${series})`))[0]?.value[1] ?? 0);
      if (Math.abs(value - figure) > 1e-9) wrong.push(`${name}: ${value}, not ${figure}`);
    }
    assert.deepEqual(wrong, []);
  });

  /** From the ledger, not from what is counted. */
  async function listRequests(): Promise<readonly ListedRequest[]> {
    const [key] = /tg-[\w-]{20,}/.exec(tollgate.output()) ?? assert.fail(tollgate.output());
    const headers = { authorization: `Bearer ${key}` };
    const answer = await httpCall(`${tollgate.url}/v1/usage/me/requests?limit=100`, { headers });
    return (JSON.parse(answer.body.toString()) as { data: readonly ListedRequest[] }).data;
  }

  async function startPrometheus(): Promise<string> {
    const directory = temporaryDirectory({ after: (end) => ends.unshift(end as () => unknown) });
    copyFileSync(RULES, join(directory, 'tollgate-rules.yaml'));
    const file = join(directory, 'prometheus.yaml');
    writeFileSync(
      file,
      readFileSync(join(ROOT, 'deploy/prometheus/prometheus.yaml'), 'utf8')
        .replaceAll('15s', '1s')
        .replace('tollgate:8081', new URL(tollgate.adminUrl).host),
    );
    const address = `127.0.0.1:${await findFreePort()}`;
    const child = spawn(
      'prometheus',
      [`--config.file=${file}`, `--storage.tsdb.path=${join(directory, 'data')}`, `--web.listen-address=${address}`],
      { stdio: 'ignore' },
    );
    ends.push(async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    });
    const ready = () =>
      httpCall(`http://${address}/-/ready`).then(
        ({ status }) => status,
        () => 0,
      );
    await waitFor('Prometheus', ready, (status) => status === 200, 30_000);
    return `http://${address}`;
  }

  /** Plain and routed requests, some of them streams, over some seconds; one refusal. */
  async function load(): Promise<void> {
    const [key] = /tg-[\w-]{20,}/.exec(tollgate.output()) ?? assert.fail(tollgate.output());
    const path = `${tollgate.url}/v1/chat/completions`;
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    await waitFor(
      'the first scrape',
      () => ask('tollgate_build_info'),
      (samples) => samples.length > 0,
    );
    await httpCall(path, { headers: { 'content-type': 'application/json' }, body: '{}' });
    for (let index = 0; index < REQUESTS; index++) {
      const messages = [{ role: 'user', content: `Hello ${index % 5}` }];
      for (const model of ['sim/small', 'service/auto']) {
        const body = JSON.stringify({ model, stream: index % 2 === 0, messages });
        const answer = await httpCall(path, { headers, body });
        assert.equal(answer.status, 200, answer.body.toString());
      }
      await pause(200);
    }
    await httpCall(`${tollgate.url}/v1/usage/me`, { headers });
    await waitFor(
      'the facts',
      () => ask('sum(tollgate_facts_inserted_total)'),
      ([sample]) => Number(sample?.value[1]) === REQUESTS * 2,
    );
    await pause(3_000);
  }

  async function ask(expression: string): Promise<readonly Sample[]> {
    const answer = await httpCall(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { status, data, error } = JSON.parse(answer.body.toString()) as {
      status: string;
      error?: string;
      data: { result: readonly Sample[] };
    };
    assert.equal(status, 'success', `${expression}: ${error}`);
    return data.result;
  }
});

interface ListedRequest {
  readonly native_tokens_prompt: number;
  readonly native_tokens_completion: number;
  readonly total_cost: number;
}

type Figure = number | 'of the machine';

/**
 * What each family says once the load is over and all of it is posted; of a histogram, how much it has observed. What
 * is not here says 0: nothing of its kind has happened, or nothing of it is left open.
 */
function afterTheLoad(requests: readonly ListedRequest[], classifierCalls: number): Readonly<Record<string, Figure>> {
  const answers = REQUESTS * 2;
  const sum = (part: keyof ListedRequest): number => requests.reduce((total, request) => total + request[part], 0);
  const machine = 'of the machine' as const;
  return {
    tollgate_requests_total: answers,
    tollgate_request_duration_seconds: answers,
    tollgate_ttft_seconds: answers,
    tollgate_overhead_seconds: answers,
    tollgate_provider_latency_seconds: answers,
    tollgate_tokens_total: sum('native_tokens_prompt') + sum('native_tokens_completion'),
    tollgate_charged_usd_total: sum('total_cost'),
    tollgate_routes_total: REQUESTS,
    tollgate_classifier_calls_total: classifierCalls,
    tollgate_classifier_seconds: classifierCalls,
    tollgate_facts_inserted_total: answers,
    // A record of the start and one of the end.
    tollgate_spool_records_posted_total: answers * 2,
    tollgate_refusals_total: 1,
    tollgate_reports_total: 1,
    // Of streams whose clients did not ask for usage.
    tollgate_usage_counted_total: REQUESTS,
    tollgate_worker_tasks_total: REQUESTS,
    tollgate_worker_task_seconds: REQUESTS,
    tollgate_build_info: 1,
    tollgate_processes_ready: machine,
    tollgate_worker_threads: machine,
    tollgate_upstream_open: machine,
    tollgate_connections_open: machine,
    tollgate_event_loop_delay_max_seconds: machine,
    tollgate_resident_memory_bytes: machine,
    tollgate_lease_calls_total: machine,
    tollgate_lease_free: machine,
    tollgate_lease_free_usd: machine,
    tollgate_spool_epochs: machine,
    tollgate_job_last_success_timestamp_seconds: machine,
    tollgate_job_duration_seconds: machine,
  };
}
