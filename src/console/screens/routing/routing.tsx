// The routing report (spec 2.5): its totals, and the order of its charts and tables.

import type { ComponentChildren } from 'preact';
import { asFloat, dollars, duration, percent, whole } from '../../logic/format.ts';
import { periodBefore } from '../../logic/period.ts';
import { Stat, Stats } from '../../parts/figures.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { WindowTools } from '../../parts/window-tools.tsx';
import {
  type Routing,
  reportCurlCommand,
  reportPermission,
  reportTollgateCommands,
  useReport,
} from '../../state/reports.ts';
import { autoModel } from '../../state/session.ts';
import { period, reportScope } from '../../state/view.ts';
import { Corrections, Distributions, PolicyVersions, Rejections } from './routing-decisions.tsx';
import { ByModel, ByTier, TaskMap } from './routing-tables.tsx';
import { RequestsByTier, SpendAndBaseline } from './routing-time.tsx';

export function RoutingReport() {
  const query = { granularity: period.value.granularity };
  const report = useReport('routing', query);
  const command = reportCurlCommand('routing', query);
  const { start, end } = periodBefore(period.value);
  const before = useReport('routing', { ...query, start_date: start, end_date: end });
  return (
    <Page
      title="Routing"
      lead={`What ${autoModel()} chose (${reportScope.value.name}), against the strongest model it could have used.`}
      tools={<WindowTools />}
      commands={[command, ...reportTollgateCommands('routing', query)]}
    >
      <Loaded
        load={report}
        permission={reportPermission()}
        isEmpty={({ totals }) => totals.requests === 0}
        empty={
          <>
            <p>No routed request in this window.</p>
            <p>
              Requests that name the model <code>{autoModel()}</code> appear here, once the organization has a routing
              policy.
            </p>
          </>
        }
      >
        {(data) => (
          <>
            <Totals totals={data.totals} before={before.data?.totals ?? null} />
            <div class="grid">
              <RequestsByTier report={data} command={command} />
              <SpendAndBaseline report={data} command={command} />
              <ByTier report={data} />
              <ByModel report={data} />
              <TaskMap report={data} />
              <Distributions report={data} command={command} />
              <Rejections report={data} />
              <PolicyVersions report={data} />
              <Corrections report={data} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface TotalsProps {
  readonly totals: Routing['totals'];
  readonly before: Routing['totals'] | null;
}

function Totals({ totals, before }: TotalsProps) {
  const { classifier, sessions } = totals;
  return (
    <>
      <Stats>
        <Stat
          name="Saved"
          value={dollars(totals.savings_usd)}
          tone={asFloat(totals.savings_usd) > 0 ? 'good' : 'bad'}
          note={`${points(totals.savings_pct)} of the baseline, over ${whole(totals.baseline_requests)} requests`}
        />
        <Stat
          name="Routed"
          value={whole(totals.requests)}
          note={`${percent(totals.routed_share)} of all ${whole(totals.all_requests)}`}
        />
        <Stat
          name="Spend"
          value={dollars(totals.spend_usd)}
          note={change(before && `${dollars(before.spend_usd)} before`)}
        />
        <Stat
          name="Per request"
          value={dollars(totals.cost_per_request)}
          note={change(before && `${dollars(before.cost_per_request)} before`)}
        />
        <Stat
          name="p95 latency"
          value={duration(totals.p95_latency_ms)}
          note={`p50 ${duration(totals.p50_latency_ms)} · first byte ${duration(totals.p50_ttft_ms)}`}
        />
        <Stat name="Errors" value={percent(totals.error_rate)} note={`cut short ${percent(totals.truncation_rate)}`} />
      </Stats>
      <Stats>
        <Stat
          name="Classifier calls"
          value={whole(classifier.calls)}
          note={`${percent(classifier.cached_share)} used again in a turn`}
        />
        <Stat name="Classifier time" value={duration(classifier.p50_ms)} note={`p95 ${duration(classifier.p95_ms)}`} />
        <Stat
          name="Classifier cost"
          value={classifier.cost_usd === null ? 'not known' : dollars(classifier.cost_usd)}
          note={`${whole(classifier.input_tokens)} tokens read`}
        />
        <Stat
          name="Confidence"
          value={totals.avg_confidence === null ? 'not known' : totals.avg_confidence.toFixed(2)}
          note={`${percent(classifier.escalated_share)} escalated · ${percent(classifier.fallback_rate)} fell back`}
        />
        <Stat
          name="Corrected follow-ups"
          value={percent(sessions.correction_rate)}
          note={`${whole(sessions.corrections)} of ${whole(sessions.follow_ups)}`}
        />
        <Stat
          name="Kept on their model"
          value={percent(sessions.sticky_share)}
          note={`${whole(sessions.sticky)} of ${whole(sessions.remembered)} remembered`}
        />
      </Stats>
    </>
  );
}

/** This figure of the report is already a percentage, not a share of 1. */
function points(value: number | null): string {
  return value === null ? 'not known' : `${value.toFixed(1)} %`;
}

function change(text: ComponentChildren): ComponentChildren {
  return text ?? ' ';
}
