// One request: cost, tokens, times, the routing decision in words, and the same as a command.

import type { ComponentChildren } from 'preact';
import { commandOf } from '../api.ts';
import { dollars, duration, moment, whole } from '../logic/format.ts';
import { routeInWords } from '../logic/route-words.ts';
import { CodeBlock, CopyButton } from '../parts/copy.tsx';
import { Badge } from '../parts/figures.tsx';
import { Dialog } from '../parts/form.tsx';
import { RefusalNotice, Waiting } from '../parts/loaded.tsx';
import { useRead } from '../state/load.ts';
import type { RequestRow } from '../state/reports.ts';
import { zone } from '../state/view.ts';
import { StatusBadge } from './request-table.tsx';

interface PanelProps {
  readonly id: string;
  /** null: it is not on the page that is shown. */
  readonly row: RequestRow | null;
  readonly onClose: () => void;
}

export function RequestPanel({ id, row, onClose }: PanelProps) {
  const generation = useRead('/v1/generation', { query: { id } });
  return (
    <Dialog title="Request" onClose={onClose} isPanel>
      <p class="mono">
        {id} <CopyButton text={id} label="Copy id" />
      </p>
      {row !== null && <RowFacts row={row} />}
      {row === null && generation.refusal !== null && (
        <RefusalNotice refusal={generation.refusal} permission="usage.read" />
      )}
      {row === null && generation.isLoading && <Waiting />}
      {generation.data !== null && <BillingFacts generation={generation.data.data} isAlone={row === null} />}
      {row?.model_route != null && <RouteFacts row={row} />}
      <h3>As a command</h3>
      <CodeBlock code={commandOf('/v1/generation', { query: { id } })} label="Command" />
    </Dialog>
  );
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
      <Fact name="Provider">{row.provider ?? 'none was asked'}</Fact>
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
        {row.cost === null ? 'none' : dollars(row.cost, { exact: true })}{' '}
        <Badge>{row.billing_status.replace('_', ' ')}</Badge>
      </Fact>
      <Fact name="First byte">{duration(row.ttft_ms)}</Fact>
      <Fact name="Whole">{duration(row.latency_ms)}</Fact>
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
          <Fact name="On the strongest">
            {dollars(baseline, { exact: true })}
            <span class="note"> {route.baseline_model}, same tokens</span>
          </Fact>
        )}
      </dl>
    </>
  );
}

type Generation = NonNullable<ReturnType<typeof useRead<'/v1/generation'>>['data']>['data'];

function BillingFacts({ generation, isAlone }: { readonly generation: Generation; readonly isAlone: boolean }) {
  const {
    authorized_amount: held,
    rated_cost: rated,
    total_cost: charged,
    guardrail,
    own_failures: failures,
  } = generation;
  return (
    <dl class="facts">
      {isAlone && (
        <>
          <Fact name="Model">{generation.model ?? 'none'}</Fact>
          <Fact name="Tokens">
            {whole(generation.native_tokens_prompt)} in, {whole(generation.native_tokens_completion)} out
          </Fact>
          <Fact name="Charged">{charged === undefined ? 'nothing' : dollars(plain(charged), { exact: true })}</Fact>
          <Fact name="Billing">{generation.billing_status}</Fact>
        </>
      )}
      {rated !== undefined && <Fact name="Worth">{dollars(plain(rated), { exact: true })}</Fact>}
      {held !== undefined && <Fact name="Held before">{dollars(plain(held), { exact: true })}</Fact>}
      {guardrail !== undefined && <Fact name="Screened">{guardrailWords(guardrail)}</Fact>}
      {(failures?.length ?? 0) > 0 && (
        <Fact name="Own keys first">
          {failures?.map(({ reason, status }) => `${reason}${status === null ? '' : ` (${status})`}`).join(', ')}
        </Fact>
      )}
    </dl>
  );
}

/** As the API wrote it, without an exponent. */
function plain(amount: number): string {
  return amount.toFixed(12).replace(/0+$/, '').replace(/\.$/, '');
}

function guardrailWords({ input, output }: NonNullable<Generation['guardrail']>): string {
  const said = [
    [input, 'request'],
    [output, 'reply'],
  ] as const;
  return said
    .flatMap(([stage, name]) =>
      stage === undefined ? [] : [`${name}: ${stage.action}${findingWords(stage.findings)}`],
    )
    .join('; ');
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
