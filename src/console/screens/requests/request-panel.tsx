// The panel of one request: cost, tokens, times, the routing decision in words, calls to providers, guardrails.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type AnswerOf, curlCommand, send } from '../../api.ts';
import { TimeSpan } from '../../charts/cell-marks.tsx';
import { dollars, duration, moment, percent, spaced, whole } from '../../logic/format.ts';
import { routeInWords } from '../../logic/route-words.ts';
import { CodeBlock, CopyButton } from '../../parts/copy.tsx';
import { Badge } from '../../parts/figures.tsx';
import { Dialog } from '../../parts/form.tsx';
import { Loading, RefusalNotice } from '../../parts/loaded.tsx';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';
import { type Load, useLoad } from '../../state/load.ts';
import { pathOf, type RequestRow, reportPermission } from '../../state/reports.ts';
import { zone } from '../../state/view.ts';
import { StatusBadge } from './request-table.tsx';

interface PanelProps {
  readonly id: string;
  /** The request's row in the listing, shown until the details are here; null if the listing does not have it. */
  readonly row: RequestRow | null;
  readonly onClose: () => void;
}

type Answered = AnswerOf<'/v1/admin/active-org/usage/requests/{requestId}'>;
type Detailed = Answered['data'];
type Attempt = NonNullable<Detailed['details']>['attempts'][number];

/** Milliseconds count from the arrival of the request. */
const attemptColumns = (lastedMs: number): readonly Column<Attempt>[] => [
  { name: 'Provider', raw: ({ provider }) => provider },
  numberColumn('Began', ({ started_ms: ms }) => ms, duration),
  numberColumn('Ended', ({ ended_ms: ms }) => ms, duration),
  {
    name: 'Time',
    raw: ({ started_ms: from }) => from,
    show: ({ started_ms: from, ended_ms: to }) => (
      <TimeSpan fromMs={from} toMs={to ?? lastedMs} windowStartMs={0} windowEndMs={lastedMs} />
    ),
  },
  {
    name: 'Result',
    raw: ({ status, cause }) => cause ?? status,
    show: ({ status, cause }) => [status, cause].filter((part) => part !== null).join(' ') || 'its reply',
  },
];

export function RequestPanel({ id, row, onClose }: PanelProps) {
  const path = `${pathOf('requests')}/${encodeURIComponent(id)}`;
  const load = useLoad(path, (signal) => send<Answered>({ method: 'get', address: path }, signal));
  const isComing = useReadAgain(load);
  const shown = load.data?.data ?? row;
  const details = load.data?.data.details ?? null;
  return (
    <Dialog title="Request" onClose={onClose} isPanel>
      <p class="mono">
        {id} <CopyButton text={id} label="Copy id" />
      </p>
      {shown !== null && <RowFacts row={shown} />}
      {isComing && (
        <>
          <Loading />
          <p class="note">A request appears in the reports some seconds after it has ended.</p>
        </>
      )}
      {load.refusal !== null && !isComing && <RefusalNotice refusal={load.refusal} permission={reportPermission()} />}
      {shown === null && load.isLoading && !isComing && <Loading />}
      {shown?.model_route != null && <RouteFacts row={shown} />}
      {details !== null && <Details details={details} latencyMs={shown?.latency_ms ?? null} />}
      <h3>As a command</h3>
      <CodeBlock code={curlCommand(path)} label="Command" />
    </Dialog>
  );
}

const READ_AGAIN_MS = 2_000;
const READ_AGAIN_MAX = 10;

/** A request that has just ended is not in the reports yet. For twenty seconds a 404 is therefore tried again. */
function useReadAgain({ refusal, reload }: Load<unknown>): boolean {
  const [tries, setTries] = useState(0);
  const isComing = refusal?.status === 404 && tries < READ_AGAIN_MAX;
  useEffect(() => {
    if (!isComing) return;
    const timer = setTimeout(() => {
      setTries(tries + 1);
      reload();
    }, READ_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [isComing, tries]);
  return isComing;
}

function RowFacts({ row }: { readonly row: RequestRow }) {
  return (
    <dl class="facts">
      <Fact name="When">{moment(row.created_at, zone.value)}</Fact>
      <Fact name="Model">
        {row.model ?? 'none'}
        {row.requested_model !== row.model && (
          <span class="note"> asked for {row.requested_model ?? 'nothing that could be read'}</span>
        )}
      </Fact>
      <Fact name="Provider">{row.provider ?? 'none was called'}</Fact>
      <Fact name="Status">
        <StatusBadge row={row} />
      </Fact>
      <Fact name="API">
        {row.api}
        {row.streamed ? ', streamed' : ''}
      </Fact>
      <Fact name="Tokens">
        {whole(row.tokens_prompt)} in
        {row.tokens_cached !== null && row.tokens_cached > 0 && ` (${whole(row.tokens_cached)} from the cache)`},{' '}
        {whole(row.tokens_completion)} out
      </Fact>
      <Fact name="Cost">
        {row.cost === null ? 'none' : dollars(row.cost, { exact: true })} <Badge>{spaced(row.billing_status)}</Badge>
      </Fact>
      <Fact name="First byte">{duration(row.ttft_ms)}</Fact>
      <Fact name="Total time">{duration(row.latency_ms)}</Fact>
      <Fact name="Key">{row.api_key ?? row.api_key_id}</Fact>
      {row.user !== null && <Fact name="Person">{row.user}</Fact>}
      {row.team !== null && <Fact name="Team">{row.team}</Fact>}
      {row.tags.length > 0 && (
        <Fact name="Tags">
          <span class="badges">
            {row.tags.map((tag) => (
              <Badge key={tag}>{tag}</Badge>
            ))}
          </span>
        </Fact>
      )}
      {row.client_request_id !== null && <Fact name="Client’s id">{row.client_request_id}</Fact>}
      {row.credential_source === 'own' && <Fact name="Provider key">your own</Fact>}
      {row.guardrail !== null && <Fact name="Guardrail">{row.guardrail}</Fact>}
    </dl>
  );
}

function RouteFacts({ row }: { readonly row: RequestRow }) {
  if (row.model_route === null) return null;
  const route = row.model_route;
  const { confidence, baseline_cost_usd: baseline } = route;
  return (
    <>
      <h3>Why this model</h3>
      <ul class="words">
        {routeInWords(route, row.model).map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <dl class="facts">
        {confidence !== undefined && <Fact name="Confidence">{confidence.toFixed(2)}</Fact>}
        {baseline !== undefined && (
          <Fact name="On the strongest model">
            {dollars(baseline, { exact: true })}
            <span class="note"> {route.baseline_model}, same tokens</span>
          </Fact>
        )}
      </dl>
    </>
  );
}

/** The duration of the request. The call that served has no end of its own and lasts until the end of the request. */
function lastedMsOf(attempts: readonly Attempt[], latencyMs: number | null): number {
  return Math.max(1, latencyMs ?? 0, ...attempts.map(({ started_ms: from, ended_ms: to }) => to ?? from));
}

interface DetailsProps {
  readonly details: NonNullable<Detailed['details']>;
  readonly latencyMs: number | null;
}

function Details({ details, latencyMs }: DetailsProps) {
  const {
    authorized_amount: held,
    rated_cost: rated,
    fee,
    usage_problem: problem,
    route,
    attempts,
    guardrail,
    own_failures: failures,
  } = details;
  const tiers = Object.entries(route?.distribution ?? {});
  return (
    <>
      <dl class="facts">
        <Fact name="Outcome">{spaced(details.outcome)}</Fact>
        {rated !== null && <Fact name="Rated cost">{dollars(rated, { exact: true })}</Fact>}
        {held !== null && <Fact name="Held">{dollars(held, { exact: true })}</Fact>}
        {problem != null && <Fact name="Usage">{spaced(problem)}</Fact>}
        {fee !== null && <Fact name="Fee">{dollars(fee, { exact: true })}</Fact>}
        {route !== null && <Fact name="Policy">{`${route.policy}, version ${route.policy_version}`}</Fact>}
        {tiers.length > 0 && (
          <Fact name="Tiers">{tiers.map(([tier, share]) => `${tier} ${percent(share, 0)}`).join(' · ')}</Fact>
        )}
        {guardrail !== null && <Fact name="Screened">{guardrailWords(guardrail)}</Fact>}
        {failures.length > 0 && (
          <Fact name="Own keys that failed">{failures.map(({ reason }) => spaced(reason)).join(', ')}</Fact>
        )}
      </dl>
      {attempts.length > 0 && (
        <>
          <h3>Calls to providers</h3>
          <Table
            caption="Calls to providers"
            columns={attemptColumns(lastedMsOf(attempts, latencyMs))}
            rows={attempts}
          />
        </>
      )}
      {route !== null && route.rejected.length > 0 && (
        <>
          <h3>Passed over</h3>
          <ul class="words">
            {route.rejected.map(({ model, tier, reason }) => (
              <li key={`${tier} ${model}`}>{`${model} (${tier}): ${spaced(reason)}`}</li>
            ))}
            {route.rejected_more !== undefined && <li>{`and ${route.rejected_more} more`}</li>}
          </ul>
        </>
      )}
    </>
  );
}

function guardrailWords({ input, output }: NonNullable<NonNullable<Detailed['details']>['guardrail']>): string {
  const said = [
    [input, 'request'],
    [output, 'reply'],
  ] as const;
  return said
    .flatMap(([stage, name]) =>
      stage === undefined ? [] : [`${name}: ${actionWords(stage.action)}${findingWords(stage.findings)}`],
    )
    .join('; ');
}

function actionWords(action: string): string {
  return action === 'none' ? 'nothing found' : action;
}

function findingWords(
  findings: readonly { readonly rule: string; readonly entity: string; readonly count: number }[] | undefined,
): string {
  return findings === undefined || findings.length === 0
    ? ''
    : ` (${findings.map(({ entity, count }) => `${count} ${entity}`).join(', ')})`;
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
